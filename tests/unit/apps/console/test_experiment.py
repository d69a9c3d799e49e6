"""The process beside the console: how far it is, what it has drawn, how it ended. Another program plays its part."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("nicegui", reason="the console needs odradek[console]")

from odradek.apps.console.experiment import Experiment, parse_sizes

PATIENCE_S = 30
PLAYER = """#!/bin/sh
for last; do :; done
echo "[    0 s] design one" >&2
echo "<svg/>" > "$last"
{end}
"""


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Experiment]]:
    running: list[Experiment] = []

    def begin(end: str) -> Experiment:
        player = tmp_path / "player"
        player.write_text(PLAYER.format(end=end))
        player.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(player))
        experiment = Experiment()
        assert (experiment.line, experiment.file, experiment.is_running) == ("", None, False)
        experiment.start([3])
        running.append(experiment)
        return experiment

    yield begin
    for experiment in running:
        experiment.stop()


def test_it_tells_how_far_it_is_and_shows_what_is_drawn(begun: Callable[[str], Experiment]) -> None:
    experiment = begun("exec sleep 600")
    _until(lambda: experiment.file is not None)
    _until(lambda: experiment.line == "[    0 s] design one")
    assert experiment.is_running
    with pytest.raises(ValueError, match="running already"):
        experiment.start([3])
    experiment.stop()
    assert (experiment.line, experiment.file, experiment.is_running) == ("", None, False)


def test_the_end_is_told(begun: Callable[[str], Experiment]) -> None:
    experiment = begun("exit 0")
    _until(lambda: not experiment.is_running)
    assert experiment.line == "All three designs are done."
    assert experiment.file is not None
    experiment.start([3])


def test_an_end_before_its_time_is_told_with_its_last_words(begun: Callable[[str], Experiment]) -> None:
    experiment = begun("echo 'error: there is no Java' >&2; exit 1")
    _until(lambda: not experiment.is_running)
    assert experiment.line == "It ended before its time: error: there is no Java"


def test_how_many_members_is_read_as_a_person_writes_it() -> None:
    assert parse_sizes("3") == [3]
    assert parse_sizes(" 3,10 , 30") == [3, 10, 30]
    for wrong in ("", "2", "three", "3,,10", "1000", "3 10", "3,4,5,6", "-3"):
        with pytest.raises(ValueError, match="numbers from 3 to 100"):
            parse_sizes(wrong)
