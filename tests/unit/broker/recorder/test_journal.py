"""The flight recorder's files: bounded, rotated, readable after a crash, and the story that several of them tell."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from journal_tales import ELECTED, EVENT, state, telling

from odradek.base.clock import ManualClock
from odradek.base.errors import FatalError
from odradek.broker.recorder import recorder as recorder_module
from odradek.broker.recorder.core.entry import Entry, Kind, maybe_entry
from odradek.broker.recorder.core.picture import Picture
from odradek.broker.recorder.journal_files import FILES
from odradek.broker.recorder.journals import find_journals, merged, read_journals
from odradek.broker.recorder.recorder import Facts, Recorder
from odradek.model.topology import TopicPartition

ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000)


@pytest.fixture
def recorder(tmp_path: Path, clock: ManualClock) -> Iterator[Recorder]:
    recorder = Recorder([tmp_path], 1, 1 << 20, clock)
    recorder.start()
    yield recorder
    recorder.stop()


def test_an_entry_is_what_its_line_says() -> None:
    entry = Entry(5, 1, 7, Kind.SEND, "LeaderAndIsr", cause=6, isr=(2, 1), partitions=("orders-0",), text="é\n")
    assert maybe_entry(entry.as_line()) == entry
    assert entry.as_line().count("\n") == 1


@pytest.mark.parametrize(
    "line", ["", '{"time_ms":1,"bro', "[]", "7", '{"time_ms":"x","broker":1,"seq":1,"kind":"a","what":"b"}', "{}"]
)
def test_what_is_no_entry_is_passed_over(line: str) -> None:
    assert maybe_entry(line) is None


def test_effects_know_the_line_of_their_event(tmp_path: Path, recorder: Recorder) -> None:
    recorder.record(telling, {"kind": Kind.LIFE, "what": "Started"})
    cause = recorder.record(telling, EVENT, controller_epoch=3)
    recorder.record(telling, state(2, 1, 2, 1), state(2, 1, 2, 1, partition=1), controller_epoch=3, cause=cause)
    recorder.stop()
    assert [(e.seq, e.cause, e.controller_epoch, e.what) for e in read_journals(tmp_path)] == [
        (1, None, None, "Started"),
        (2, None, 3, "BrokersChanged"),
        (3, 2, 3, "PartitionState"),
        (4, 2, 3, "PartitionState"),
    ]


def test_the_next_life_goes_on_after_a_torn_line(tmp_path: Path, clock: ManualClock) -> None:
    for life in ("first", "second"):
        recorder = Recorder([tmp_path], 1, 1 << 20, clock)
        recorder.start()
        recorder.record(telling, {"kind": Kind.LIFE, "what": life})
        recorder.stop()
        (file,) = find_journals(tmp_path)
        with file.open("a") as torn:
            torn.write('{"time_ms":1000,"broker":1,"se')
    assert [(entry.seq, entry.what) for entry in read_journals(tmp_path)] == [(1, "first"), (2, "second")]


def test_the_journal_stays_within_its_bytes_and_can_still_be_replayed(tmp_path: Path, clock: ManualClock) -> None:
    recorder = Recorder([tmp_path], 1, 1 << 16, clock)
    recorder.start()
    recorder.record(telling, ELECTED, state(0, 0, 0, 1, topic="quiet"), controller_epoch=1)
    for epoch in range(3_000):
        clock.advance(1)
        recorder.record(telling, state(epoch % 3, epoch, 0, 1, 2), controller_epoch=1)
        if epoch % 100 == 0:
            _await_written(recorder)
    recorder.stop()
    files = find_journals(tmp_path)
    assert 1 < len(files) <= FILES
    assert sum(file.stat().st_size for file in files) < 2 << 16
    picture = Picture.at(read_journals(tmp_path))
    assert (picture.controller, picture.controller_epoch) == (1, 1)
    assert picture.partitions[ORDERS].leader_epoch == 2_999
    quiet = picture.partitions[TopicPartition("quiet", 0)]
    assert (quiet.leader, quiet.isr, quiet.since_ms) == (0, (0, 1), 1_000)  # its own line is long gone


def _await_written(recorder: Recorder) -> None:
    written = threading.Event()

    def tell() -> Iterator[Facts]:
        written.set()
        return iter(())

    recorder.record(tell)
    assert written.wait(60)


def test_what_is_too_much_is_dropped_and_counted(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "QUEUE_MAX", 10)
    recorder = Recorder([tmp_path], 1, 1 << 20, clock)
    recorded = [recorder.record(telling, EVENT) for _ in range(25)]  # nobody writes yet
    assert [happening is None for happening in recorded] == [False] * 10 + [True] * 15
    recorder.start()
    recorder.stop()
    entries = read_journals(tmp_path)
    assert recorder.dropped == 15
    assert [(entry.kind, entry.count) for entry in entries if entry.kind == Kind.DROPPED] == [(Kind.DROPPED, 15)]
    assert len(entries) == 11


def test_a_disk_that_fails_costs_entries_and_nothing_else(tmp_path: Path, clock: ManualClock) -> None:
    place = tmp_path / "full"
    place.write_text("no directory")
    recorder = Recorder([place], 1, 1 << 20, clock)
    recorder.start()
    recorder.record(telling, EVENT)
    recorder.stop()
    assert recorder.dropped == 1


def test_an_entry_that_cannot_be_described_is_no_reason_to_lose_others(tmp_path: Path, recorder: Recorder) -> None:
    def broken() -> Iterator[Facts]:
        raise RuntimeError("no words")

    recorder.record(broken)
    recorder.record(telling, EVENT)
    recorder.stop()
    assert [entry.what for entry in read_journals(tmp_path) if entry.kind == Kind.EVENT] == ["BrokersChanged"]
    assert recorder.dropped == 1


# --- several brokers ---------------------------------------------------------------------------------------------


def test_controllers_follow_one_another_whatever_their_clocks_say() -> None:
    old = [Entry(5_000 + i, 0, i, Kind.EVENT, f"old{i}", controller_epoch=1) for i in (1, 2)]
    new = [Entry(1_000 + i, 1, i, Kind.EVENT, f"new{i}", controller_epoch=2) for i in (1, 2)]
    assert [entry.what for entry in merged([*new, *old])] == ["old1", "old2", "new1", "new2"]


def test_what_no_controller_did_keeps_its_place_in_its_journal_and_in_time() -> None:
    entries = [
        Entry(100, 0, 1, Kind.LIFE, "start 0"),
        Entry(300, 0, 2, Kind.EVENT, "ruled", controller_epoch=1),
        Entry(250, 0, 3, Kind.SESSION, "the clock was set back"),
        Entry(200, 1, 1, Kind.LIFE, "start 1"),
        Entry(400, 1, 2, Kind.LIFE, "stop 1"),
    ]
    assert [entry.what for entry in merged(reversed(entries))] == [
        "start 0",
        "start 1",
        "ruled",
        "the clock was set back",
        "stop 1",
    ]


def test_a_copied_file_is_read_once(tmp_path: Path, recorder: Recorder) -> None:
    recorder.record(telling, EVENT)
    recorder.stop()
    (file,) = find_journals(tmp_path)
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / file.name).write_bytes(file.read_bytes())
    assert len(read_journals(tmp_path, copy)) == 1


def test_a_place_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FatalError, match="nowhere does not exist"):
        find_journals(tmp_path / "nowhere")
