"""The laboratories, run as a user runs them. Among the soaks, for minutes each."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


def run_lab(*arguments: str) -> str:
    command = [sys.executable, "-m", "odradek", "lab", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=1700, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("members", [3, 30])
def test_rebalances(tmp_path: Path, members: int) -> None:
    page = tmp_path / "rebalance.html"
    shown = run_lab("rebalance", "--members", str(members), "--out", str(page))
    phases = ("start", "join", "leave", "crash", "cut off", "return")
    for design in ("one", "two", "three"):
        for phase in phases:
            assert re.search(rf"^{design} +{phase} +{members} ", shown, re.MULTILINE), shown
    rows = [re.split(r"  +", line) for line in shown.splitlines() if re.match(r"(one|two|three) +\w", line)]
    # every member of design one is told of every change; ZooKeeper never hears of design three
    joins = {row[0]: row for row in rows if row[1] == "join"}
    assert int(joins["one"][4].replace(",", "")) >= members
    assert [joins["three"][column] for column in (4, 5, 6)] == ["0", "0", "0"]
    assert page.read_text().count("<svg") >= 6 * 4


def test_elections(tmp_path: Path) -> None:
    page = tmp_path / "election.html"
    shown = run_lab("election", "--partitions", "9,90", "--out", str(page))
    rows = [line.split() for line in shown.splitlines() if re.match(r"(naive|controller) +\d", line)]
    assert [row[:3] for row in rows] == [
        ["naive", "9", "3"],
        ["controller", "9", "3"],
        ["naive", "90", "30"],
        ["controller", "90", "30"],
    ]
    notified = {(row[0], row[1]): int(row[4].replace(",", "")) for row in rows}
    # two replicas of each partition of the dead hear of it; the controller, once
    assert notified["naive", "90"] >= 60 > notified["controller", "90"]
    assert "<svg" in page.read_text()
