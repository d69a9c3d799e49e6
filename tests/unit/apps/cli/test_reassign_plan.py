"""Rates that `odradek reassign` accepts, and refusals before it asks a broker."""

from pathlib import Path

import pytest

from odradek.apps.cli.main import run
from odradek.apps.cli.reassign_plan import parse_throttle
from odradek.apps.figures import time_left_text


@pytest.mark.parametrize(
    ("text", "rate"),
    [("50MB", 50 << 20), ("500kb", 500 << 10), ("1GB/s", 1 << 30), ("1234", 1234), ("7B", 7), ("none", None)],
)
def test_rates(text: str, rate: int | None) -> None:
    assert parse_throttle(text) == rate


def test_durations() -> None:
    assert [time_left_text(s) for s in (0.2, 59, 61, 3_600, 90_000)] == [
        "1 s",
        "59 s",
        "1 min 01 s",
        "1 h 00 min",
        "25 h 00 min",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan"], "no goal is given"),
        (["plan", "--drain", "two"], "'two' is not a list of numbers"),
        (["plan", "--drain", "2", "--throttle", "fast"], "'fast' is not a rate"),
        (["plan", "--balance", "luck"], "luck"),
        (["run", "/nowhere/plan.json"], "No such file"),
        (["run", "PLAN"], "orders-0 has two replicas on one broker"),
        (["run", "PLAN", "--throttle", "0"], "'0' is not a rate"),
    ],
)
def test_a_wrong_command_line_asks_nobody(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text('{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 1]}]}')
    typed = [str(plan) if argument == "PLAN" else argument for argument in arguments]
    assert run(["reassign", *typed, "--bootstrap-server", "127.0.0.1:1"]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
