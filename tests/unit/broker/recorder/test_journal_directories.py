"""A journal over several directories, some of which fail: nothing is lost that can be written, and a gap is told."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from journal_tales import ELECTED, EVENT, state, telling

from odradek.base.clock import ManualClock
from odradek.broker.recorder.core.entry import Entry, Kind
from odradek.broker.recorder.core.picture import Picture
from odradek.broker.recorder.journals import find_journals, read_journals
from odradek.broker.recorder.recorder import Facts, Recorder
from odradek.model.topology import TopicPartition
from waiting import eventually

ORDERS = TopicPartition("orders", 0)
STARTED: Facts = {"kind": Kind.LIFE, "what": "Started"}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000)


@pytest.fixture
def disks(tmp_path: Path) -> list[Path]:
    found = [tmp_path / "disk-a", tmp_path / "disk-b"]
    for disk in found:
        disk.mkdir()
    return found


@contextmanager
def recording(disks: Sequence[Path], clock: ManualClock, *failed: Path, bytes_max: int = 1 << 20) -> Iterator[Recorder]:
    """One life of a broker, of whose directories some had failed before."""
    recorder = Recorder(disks, 1, bytes_max, clock, makes_directories=False)
    for directory in failed:
        recorder.directory_failed(directory)
    recorder.start()
    recorder.record(telling, STARTED)
    for directory in failed:
        recorder.record(telling, {"kind": Kind.LOG_DIR, "what": "LogDirFailed", "directory": str(directory)})
    try:
        yield recorder
    finally:
        recorder.stop()


def tell(recorder: Recorder, where: Path, *facts: Facts, controller_epoch: int | None = None) -> None:
    """Record it, and wait until it is in a journal there."""
    kinds = [f'"{fact["what"]}"' for fact in facts]

    def count() -> int:
        return sum(any(kind in line for kind in kinds) for line in _lines(where))

    written = count()
    recorder.record(telling, *facts, controller_epoch=controller_epoch)
    eventually(lambda: count() >= written + len(facts), 60)


def _lines(where: Path) -> list[str]:
    return [line for path in find_journals(where) for line in path.read_text().splitlines()]


def fill(disk: Path) -> None:
    """Writes to the open journal find no space left, as on a full disk."""
    open_files = {int(name): Path(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")}
    (journal,) = [number for number, link in open_files.items() if _target(link).startswith(f"{disk}/recorder-")]
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, journal)
    os.close(full)


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except FileNotFoundError:
        return ""


def gaps(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.kind == Kind.GAP]


def test_a_failed_directory_ends_no_journal(disks: list[Path], clock: ManualClock) -> None:
    first, second = disks
    with recording(disks, clock) as recorder:
        tell(recorder, first, ELECTED, state(0, 0, 0, 1), controller_epoch=1)
        recorder.directory_failed(first)
        recorder.record(telling, EVENT, controller_epoch=1)
    told = read_journals(first, second)
    assert [entry.what for entry in told if entry.kind != Kind.PICTURE] == [
        "Started",
        "Elected",
        "PartitionState",
        "JournalMoved",
        "BrokersChanged",
    ]
    assert gaps(told) == []
    assert [entry.seq for entry in told] == list(range(1, len(told) + 1))

    rest = read_journals(second)
    (gap,) = gaps(rest)
    assert (gap.broker, gap.count, gap.text) == (1, None, f"earlier entries are in {first}")
    picture = Picture.at(rest)
    assert (picture.controller, picture.partitions[ORDERS].isr) == (1, (0, 1)), "a new file begins with the picture"


def test_lines_that_a_disk_refuses_go_to_another(disks: list[Path], clock: ManualClock) -> None:
    first, second = disks
    with recording(disks, clock) as recorder:
        tell(recorder, first, ELECTED, controller_epoch=1)
        fill(first)
        recorder.record(telling, EVENT, state(1, 1, 1), controller_epoch=1)
    told = read_journals(*disks)
    assert gaps(told) == []
    assert [entry.what for entry in read_journals(second) if entry.kind in (Kind.EVENT, Kind.WRITE)] == [
        "BrokersChanged",
        "PartitionState",
    ]
    assert [entry.seq for entry in told] == list(range(1, len(told) + 1))
    assert recorder.dropped == 0
    assert Picture.at(told).partitions[ORDERS].leader == 1


def test_lines_that_nobody_takes_are_told_to_be_missing(disks: list[Path], clock: ManualClock) -> None:
    disk = disks[0]
    with recording([disk], clock) as recorder:
        tell(recorder, disk, ELECTED, state(0, 0, 0, 1), controller_epoch=1)
        fill(disk)
        clock.advance(5)
        recorder.record(telling, EVENT, state(1, 1, 1), controller_epoch=1)
        eventually(lambda: recorder.dropped == 1, 60)
        clock.advance(5)
        recorder.record(telling, {"kind": Kind.LIFE, "what": "goes on"})
    told = read_journals(disk)
    (gap,) = gaps(told)
    assert (gap.what, gap.count, gap.after, gap.since_ms, gap.time_ms) == ("NotWritten", 2, 3, 1_000, 1_010)
    assert [entry.what for entry in told][-1] == "goes on"


def test_what_is_missing_is_told_once_also_in_another_directory(disks: list[Path], clock: ManualClock) -> None:
    first, second = disks
    second.rmdir()
    with recording(disks, clock) as recorder:  # which begins with a directory missing
        tell(recorder, first, ELECTED, controller_epoch=1)
        fill(first)
        recorder.record(telling, EVENT, state(1, 1, 1), controller_epoch=1)
        eventually(lambda: recorder.dropped == 1, 60)
        recorder.directory_failed(first)
        second.mkdir()
        tell(recorder, second, EVENT, controller_epoch=1)
    told = gaps(read_journals(*disks))
    assert [(gap.what, gap.count) for gap in told] == [("DirectoryMissing", None), ("NotWritten", 2)]


def test_the_picture_knows_what_the_disk_does_not(disks: list[Path], clock: ManualClock) -> None:
    first, second = disks
    with recording(disks, clock) as recorder:
        tell(recorder, first, ELECTED, state(0, 0, 0, 1), controller_epoch=1)
        away = first.rename(first.with_name("away"))
        tell(recorder, away, state(1, 1, 1), controller_epoch=1)  # nobody has noticed, and the open file lives on
        recorder.directory_failed(first)
        tell(recorder, second, EVENT, controller_epoch=1)
    assert not first.exists(), "a log directory that is missing stays missing"
    assert Picture.at(read_journals(second)).partitions[ORDERS].leader == 1


def test_a_full_file_is_followed_by_one_in_another_directory(disks: list[Path], clock: ManualClock) -> None:
    first, second = disks
    with recording(disks, clock, bytes_max=8) as recorder:
        tell(recorder, first, ELECTED, controller_epoch=1)
        first.rename(first.with_name("away"))
        tell(recorder, second, EVENT, controller_epoch=1)
    assert [entry.what for entry in read_journals(second) if entry.kind == Kind.EVENT] == ["BrokersChanged"]
    assert gaps(read_journals(first.with_name("away"), second)) == []


def test_the_next_life_goes_on_in_the_directory_of_the_last_file(disks: list[Path], clock: ManualClock) -> None:
    first, second = disks
    with recording(disks, clock) as recorder:
        tell(recorder, first, EVENT)
        recorder.directory_failed(first)
        recorder.record(telling, EVENT)
    with recording(disks, clock) as recorder:
        recorder.record(telling, EVENT)
    told = read_journals(*disks)
    assert [entry.seq for entry in told] == list(range(1, len(told) + 1))
    assert len(find_journals(first)) == len(find_journals(second)) == 1
    assert gaps(told) == []


def test_a_life_that_cannot_see_the_last_one_tells_of_it_once(disks: list[Path], clock: ManualClock) -> None:
    first, second = disks
    with recording(disks, clock):
        pass
    for _ in range(2):
        clock.advance(1)
        with recording(disks, clock, first) as recorder:
            recorder.record(telling, EVENT)
    told = read_journals(*disks)
    lives = [entry.what for entry in told if entry.kind in (Kind.LIFE, Kind.GAP)]
    assert lives == ["Started", "DirectoryMissing", "Started", "Started"]
    (gap,) = gaps(told)
    assert gap.text == f"earlier entries may be in {first}"
    assert [entry.what for entry in read_journals(second) if entry.kind in (Kind.LIFE, Kind.GAP)] == lives[1:]
    with recording(disks, clock) as recorder:  # the disk is back
        recorder.record(telling, EVENT)
    assert gaps(read_journals(*disks)) == [gap]
    assert len({entry.seq for entry in read_journals(*disks)}) == len(_lines(first)) + len(_lines(second))
