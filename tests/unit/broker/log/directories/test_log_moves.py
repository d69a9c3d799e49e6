"""A log moves from one directory to another: what it is there, a crash at any point, truncation, disks that fail."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import UUID

import pytest
from log_building import TP, append, contents, values_of
from log_site import Site

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.core.append_result import AppendResult
from odradek.broker.log.directories.log_moves import LogCopy
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.model.topology import TopicPartition

PIECE = 300
DISK_ERROR = OSError(errno.EIO, "Input/output error")


class TwoDisks:
    """A broker with two directories; TP lies in the first."""

    def __init__(self, root: Path) -> None:
        self.old, self.new = root / "old", root / "new"
        self.site = Site(self.old, self.new, segment_bytes="1000")
        self.log = self.site.create()
        assert self.log.directory.parent == self.old

    def restart(self) -> PartitionLog:
        """After a crash; the log as it is then."""
        self.site.crash()
        self.site = Site(self.old, self.new, segment_bytes="1000")
        self.log = self.site.create()
        return self.log

    def begin(self) -> LogCopy:
        return LogCopy(self.log, self.site.dirs.moves.begin_move(TP, self.new))

    def finish(self, copy: LogCopy) -> PartitionLog:
        copy_all(copy)
        self.site.dirs.moves.prepare_to_finish(TP)
        source, moved = self.log, self.site.dirs.moves.finish_move(TP)
        self.site.dirs.moves.settle_move(source, moved)
        return moved


@pytest.fixture
def disks(tmp_path: Path) -> TwoDisks:
    return TwoDisks(tmp_path)


def copy_all(copy: LogCopy) -> None:
    for _ in range(1000):
        if copy.is_whole:
            return
        copy.copy(PIECE)
    pytest.fail("the copy never got whole")


def write(log: PartitionLog, *values: str, epoch: int = 0) -> None:
    for value in values:
        append(log, value, leader_epoch=epoch)


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.is_dir())


def test_a_log_moves_with_all_that_it_knows(disks: TwoDisks) -> None:
    source = disks.log
    write(source, *"abc")
    append(source, "d", "e", "f", leader_epoch=1, producer_id=7, producer_epoch=0, base_sequence=0)
    source.maybe_advance_log_start(4)  # inside of a batch
    write(source, *map(str, range(40)), epoch=1)
    source.begin_epoch(2)
    copy = disks.begin()
    (future,) = files(disks.new)
    assert future.startswith("orders-0.")
    assert future.endswith("-future")
    moved = disks.finish(copy)

    assert contents(moved) == contents(source)
    assert moved.log_start_offset == 4
    assert moved.epochs.entries == source.epochs.entries
    assert moved.config == source.config
    again = append(moved, "d", "e", "f", leader_epoch=2, producer_id=7, producer_epoch=0, base_sequence=0)
    assert (again.is_duplicate, again.first_offset) == (True, 3)
    assert disks.site.dirs.table.get(TP) is moved
    assert disks.site.dirs.table.future(TP) is None
    assert files(disks.new) == ["orders-0"]
    assert not (moved.directory / "moved-from").exists()
    (retired,) = files(disks.old)
    assert retired.endswith("-delete")
    write(moved, "new", epoch=2)
    disks.site.stop()
    assert values_of(contents(disks.restart()))[-1] == "new"
    disks.site.tasks.run()
    assert files(disks.old) == []
    disks.site.crash()


class Killed(BaseException):
    """As if by kill -9."""


def killed_at(number: int, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> bool:
    """Return whether there was such a call on the file system, before which the process could be killed."""
    calls = 0

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == number:
                raise Killed
            return real(*args, **kwargs)

        return call

    with monkeypatch.context() as patched:
        for name in ("rename", "replace", "unlink", "fsync", "mkdir"):
            patched.setattr(os, name, counted(getattr(os, name)))
        try:
            act()
        except Killed:
            return True
    return False


def test_a_crash_at_any_point_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = [str(number) for number in range(40)]
    number = 0
    while True:
        number += 1
        disks = TwoDisks(tmp_path / str(number))
        write(disks.log, *values)
        was_killed = killed_at(number, monkeypatch, lambda disks=disks: disks.finish(disks.begin()))  # type: ignore[misc]
        found = disks.restart()
        assert values_of(contents(found)) == values, f"killed before call {number}"
        assert disks.site.failures == []
        if found.directory.parent == disks.old:
            future = disks.site.dirs.moves.resumable(TP)
            found = disks.finish(LogCopy(found, future) if future is not None else disks.begin())
        write(found, "more")
        assert values_of(contents(disks.restart())) == [*values, "more"]
        assert disks.log.directory == disks.new / "orders-0"
        disks.site.tasks.run()
        assert (files(disks.old), files(disks.new)) == ([], ["orders-0"])
        disks.site.crash()
        if not was_killed:
            break
    assert number > 10


def test_a_move_goes_on_where_a_crash_left_it(disks: TwoDisks) -> None:
    write(disks.log, *map(str, range(40)))
    copy = disks.begin()
    copy.copy(PIECE)
    copy.copy(PIECE)
    half = copy.future.log_end_offset
    assert 0 < half < 40
    source = disks.restart()
    future = disks.site.dirs.moves.resumable(TP)
    assert future is not None
    assert future.log_end_offset == half
    moved = disks.finish(LogCopy(source, future))
    assert values_of(contents(moved)) == list(map(str, range(40)))
    disks.site.crash()


def test_a_truncated_log_takes_its_copy_back(disks: TwoDisks) -> None:
    source = disks.log
    write(source, *"abcdef", epoch=1)
    copy = disks.begin()
    copy_all(copy)
    source.truncate_to(3)
    write(source, *"xyzuvw", epoch=3)
    assert not copy.is_whole
    moved = disks.finish(copy)
    assert values_of(contents(moved)) == [*"abcxyzuvw"]
    assert moved.epochs.entries == source.epochs.entries
    disks.site.crash()


def test_a_copy_that_knows_more_than_its_log_is_cut_after_a_restart(disks: TwoDisks) -> None:
    """The log lost its end with the power, say, and got another one from its leader before the move went on."""
    source = disks.log
    write(source, *"abcdef", epoch=1)
    copy_all(disks.begin())
    source.truncate_to(2)
    write(source, *"xy", epoch=2)
    source = disks.restart()
    future = disks.site.dirs.moves.resumable(TP)
    assert future is not None
    assert future.log_end_offset == 6
    assert values_of(contents(disks.finish(LogCopy(source, future)))) == [*"abxy"]
    disks.site.crash()


def test_what_retention_deletes_before_it_is_copied_is_left_out(disks: TwoDisks) -> None:
    source = disks.log
    write(source, *map(str, range(60)))
    copy = disks.begin()
    copy.copy(PIECE)
    copy.copy(PIECE)
    source.maybe_advance_log_start(55)
    assert source.delete_expired(0, high_watermark=60) > 0
    moved = disks.finish(copy)
    assert contents(moved) == [(offset, str(offset)) for offset in range(55, 60)]
    disks.site.crash()


def test_a_cancelled_move_leaves_nothing(disks: TwoDisks) -> None:
    write(disks.log, *"abc")
    copy_all(disks.begin())
    disks.site.dirs.moves.cancel_move(TP)
    assert disks.site.dirs.table.future(TP) is None
    disks.site.tasks.run()
    assert files(disks.new) == []
    assert values_of(contents(disks.restart())) == [*"abc"]
    disks.site.crash()


def test_a_piece_that_is_being_copied_is_not_cancelled_under_its_feet(
    disks: TwoDisks, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(disks.log, *"abc")
    copy = disks.begin()
    copy.compare()
    real = copy.future.append_as_follower
    cancelling = Thread(target=disks.site.dirs.moves.cancel_move, args=(TP,))

    def append_slowly(records: memoryview) -> AppendResult:
        cancelling.start()
        cancelling.join(0.2)
        assert copy.future.directory.name.endswith("-future")
        return real(records)

    monkeypatch.setattr(copy.future, "append_as_follower", append_slowly)
    assert copy.copy(PIECE) > 0
    cancelling.join(60)
    assert copy.future.directory.name.endswith("-delete")
    disks.site.tasks.run()
    assert (copy.copy(PIECE), files(disks.new), disks.site.failures) == (0, [], [])
    assert disks.site.dirs.table.is_online(disks.new)
    disks.site.crash()


def test_a_deleted_partition_takes_its_copy_along(disks: TwoDisks) -> None:
    write(disks.log, *"abc")
    copy_all(disks.begin())
    disks.site.dirs.delete(TP)
    disks.site.tasks.run()
    assert files(disks.old) == files(disks.new) == []
    disks.site.crash()


def test_a_copy_of_another_topic_of_the_same_name_is_dropped(disks: TwoDisks) -> None:
    write(disks.log, *"abc")
    copy_all(disks.begin())
    (disks.log.directory / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABw")
    disks.site.crash()
    disks.site = Site(disks.old, disks.new)
    disks.site.create(topic_id=UUID(int=7))
    assert disks.site.dirs.moves.resumable(TP) is None
    assert disks.site.dirs.table.future(TP) is None
    disks.site.crash()


def test_the_target_fails_and_the_log_stays(disks: TwoDisks) -> None:
    write(disks.log, *"abc")
    copy = disks.begin()
    copy.future.files.fail(DISK_ERROR)
    assert disks.site.dirs.table.future(TP) is None
    write(disks.log, "d")
    with pytest.raises(KafkaError) as refused:
        disks.site.dirs.moves.begin_move(TP, disks.old)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert values_of(contents(disks.log)) == [*"abcd"]
    disks.site.crash()


def test_the_source_fails_in_the_last_step(disks: TwoDisks, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that are there when the disk comes back are not taken for the log."""
    write(disks.log, *"abc")
    copy = disks.begin()
    copy_all(copy)
    source, real = disks.log, PartitionLog.rename

    def rename(log: PartitionLog, directory: Path) -> None:
        if log is source:
            raise DISK_ERROR
        real(log, directory)

    with monkeypatch.context() as patched:
        patched.setattr(PartitionLog, "rename", rename)
        moved = disks.site.dirs.moves.finish_move(TP)
    disks.site.dirs.moves.settle_move(source, moved)
    assert not disks.site.dirs.table.is_online(disks.old)
    assert disks.site.dirs.table.get(TP) is moved
    write(moved, "d")
    assert values_of(contents(disks.restart())) == [*"abcd"]
    assert disks.log.directory.parent == disks.new
    disks.site.crash()


def test_a_new_log_goes_where_it_is_wished_for(disks: TwoDisks) -> None:
    for number in (1, 3):
        disks.site.dirs.prefer_directory(TopicPartition("orders", number), disks.old)
        assert disks.site.create(TopicPartition("orders", number)).directory.parent == disks.old
    assert disks.site.create(TopicPartition("orders", 2)).directory.parent == disks.new
    disks.site.crash()
