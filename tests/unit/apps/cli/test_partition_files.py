from pathlib import Path

import pytest

from odradek.apps.cli.partition_files import read_plan
from odradek.apps.cli.usage import WrongUsage
from odradek.model.topology import TopicPartition

BEEN, NEVER = TopicPartition("t", 0), TopicPartition("t", 1)


def test_plans_for_one_group_and_for_several(tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text('t,0,5\n"t",1,6\n\n')
    assert read_plan(plan, "g", "--from-file") == {"g": {BEEN: 5, NEVER: 6}}
    plan.write_text("a,t,0,5\nb,t,1,6\n")
    assert read_plan(plan, None, "--from-file") == {"a": {BEEN: 5}, "b": {NEVER: 6}}


@pytest.mark.parametrize("text", ["t,0\n", "t,zero,1\n", "", "a,b,c,d,e\n"])
def test_a_wrong_plan_is_named_with_its_line(tmp_path: Path, text: str) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text(text)
    with pytest.raises(WrongUsage, match=r"--from-file: .*plan.csv"):
        read_plan(plan, "g", "--from-file")
