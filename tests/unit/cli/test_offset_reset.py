"""Where a group shall stand, by each way to say it."""

from datetime import timedelta
from pathlib import Path

import pytest

from odradek.base.errors import KafkaError
from odradek.cli.cluster_client import PartitionState, TopicState
from odradek.cli.offset_reset import (
    Goal,
    Situation,
    by_duration,
    parse_datetime,
    parse_duration,
    partitions_of,
    read_plan,
    shift_by,
    to_current,
    to_earliest,
    to_latest,
    to_offset,
    to_time,
)
from odradek.cli.usage import WrongUsage
from odradek.model.topology import TopicPartition

BEEN, NEVER = TopicPartition("t", 0), TopicPartition("t", 1)
SITUATION = Situation(
    earliest={BEEN: 10, NEVER: 0},
    latest={BEEN: 100, NEVER: 50},
    committed={BEEN: 40},
    at_time=lambda ms: {BEEN: ms // 1000, NEVER: None},
    now_ms=90_000,
)


@pytest.mark.parametrize(
    ("goal", "been", "never"),
    [
        (to_earliest, 10, 0),
        (to_latest, 100, 50),
        (to_current, 40, 50),
        (to_offset(7), 7, 7),
        (to_time(33_000), 33, 50),  # nothing is so young in the second: its end
        (by_duration(timedelta(seconds=30)), 60, 50),
    ],
)
def test_goals(goal: Goal, been: int, never: int) -> None:
    assert (goal(BEEN, SITUATION), goal(NEVER, SITUATION)) == (been, never)


def test_only_who_stands_somewhere_can_shift() -> None:
    assert shift_by(-15)(BEEN, SITUATION) == 25
    with pytest.raises(KafkaError, match="no offset in t-1 to shift"):
        shift_by(1)(NEVER, SITUATION)


@pytest.mark.parametrize(
    ("text", "seconds"), [("PT1H30M", 5400), ("P7D", 604_800), ("P1DT1S", 86_401), ("PT0.5S", 0.5), ("-PT1S", -1)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "P", "PT", "1h", "P1DT", "PT1X"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


def test_times_are_utc_unless_they_say_otherwise() -> None:
    assert parse_datetime("1970-01-01T00:00:01.500") == 1500
    assert parse_datetime("1970-01-01T01:00:00.000+01:00") == 0
    with pytest.raises(ValueError, match="is not a time"):
        parse_datetime("yesterday")


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


def test_topics_with_and_without_partitions() -> None:
    states = tuple(PartitionState(n, 0, 0, (0,), (0,), ()) for n in range(3))
    topics = {"t": TopicState("t", None, False, states)}  # type: ignore[arg-type]
    assert partitions_of(topics, ["t:1,0", "t:1"]) == [NEVER, BEEN]
    assert len(partitions_of(topics, ["t"])) == 3
    with pytest.raises(KafkaError, match="has no partition 9"):
        partitions_of(topics, ["t:9"])
    with pytest.raises(KafkaError, match="'u' does not exist"):
        partitions_of(topics, ["u"])
    with pytest.raises(WrongUsage, match="is not TOPIC or TOPIC:0,1,2"):
        partitions_of(topics, ["t:x"])
