"""Partitions of a coordinator whose log can't be replayed at the first attempt."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from odradek.base.clock import ManualClock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.coordinator.state.state_log_writer import StateEntry
from odradek.broker.coordinator.state.state_table import RELOAD_AFTER_MS, StateTable
from odradek.broker.purgatory.reaper import ExpirationReaper

WAIT_S = 60


class Log:
    """One partition; every record is committed."""

    def partition_for(self, key: str) -> int:
        return 0

    def is_new(self, partition: int) -> bool:
        return False

    def when_committed(self, partition: int, done: Callable[[ErrorCode], None]) -> None:
        done(ErrorCode.NONE)


class Source:
    def __init__(self) -> None:
        self.entries: list[StateEntry] = []
        self.failures: list[Exception] = []
        self.loads = 0
        self.taken_up: list[str] = []
        self.cannot_be_taken_up = ""

    def load(self, partition: int) -> Iterable[StateEntry]:
        self.loads += 1
        if self.failures:
            raise self.failures.pop(0)
        return self.entries

    def loaded(self, entry: StateEntry) -> None:
        if entry.key == self.cannot_be_taken_up:
            raise LookupError("not foreseen")
        self.taken_up.append(entry.key)

    def replayed(self, entry: StateEntry) -> None:
        pass

    thrown_away = unloaded = replayed


class Table:
    def __init__(self) -> None:
        log: Any = Log()
        self.source = Source()
        self.source.entries = [StateEntry(key, log, 0) for key in ("first", "second")]
        self.clock = ManualClock(1_700_000_000_000)
        self.reaper = ExpirationReaper(self.clock)
        self.states = StateTable("groups", log, self.clock, self.reaper, self.source)

    def settle(self) -> None:
        for pool in (self.states._loader, self.states._unloader):
            pool.submit(int).result(WAIT_S)

    def pause(self) -> None:
        self.settle()
        self.clock.advance(RELOAD_AFTER_MS + 1)
        self.reaper.expire_due()
        self.settle()

    def error(self) -> ErrorCode:
        try:
            self.states.find("first")
        except KafkaError as refusal:
            return refusal.code
        return ErrorCode.NONE


@pytest.fixture
def table() -> Iterator[Table]:
    made = Table()
    yield made
    made.states.stop()


def test_a_replay_that_fails_is_repeated(table: Table) -> None:
    table.source.failures = [KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, "deleted meanwhile"), MemoryError()]
    table.states.lead(0, 5)
    table.settle()
    assert table.error() is ErrorCode.NOT_COORDINATOR
    table.pause()
    assert table.error() is ErrorCode.NOT_COORDINATOR
    table.pause()
    assert table.error() is ErrorCode.NONE
    assert (table.source.loads, table.source.taken_up) == (3, ["first", "second"])


def test_a_replay_whose_thread_can_not_be_started_is_repeated(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*task: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(table.states._loader, "submit", fail)
        table.states.lead(0, 5)
    assert table.error() is ErrorCode.NOT_COORDINATOR
    table.pause()
    assert table.error() is ErrorCode.NONE


@pytest.mark.parametrize("end", ["resigned", "removed", "led anew"])
def test_the_end_of_the_leadership_ends_the_repetition(table: Table, end: str) -> None:
    table.source.failures = [MemoryError()]
    table.states.lead(0, 5)
    table.settle()
    if end == "resigned":
        table.states.resign(0, 5)
    elif end == "removed":
        table.states.removed(0)
    else:
        table.states.lead(0, 6)
    table.pause()
    assert table.source.loads == (2 if end == "led anew" else 1)
    assert table.error() is (ErrorCode.NONE if end == "led anew" else ErrorCode.NOT_COORDINATOR)


def test_an_entry_that_fails_does_not_keep_others_from_being_taken_up(
    table: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    table.source.cannot_be_taken_up = "first"
    table.states.lead(0, 5)
    table.settle()
    assert table.source.taken_up == ["second"]
    assert "groups can't be taken up" in capsys.readouterr().err
