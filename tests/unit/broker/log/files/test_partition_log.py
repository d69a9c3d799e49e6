"""Appending, reading, rolling, truncating and deleting, through the log's own doors."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest
from log_building import NEVER, RULES, SMALL, START_MS, TP, append, batch, contents, open_log, values_of

from odradek.base.clock import ManualClock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.files import segment as segment_module
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.protocol.compression import Codec
from odradek.protocol.record_batch import batches, read_header


def test_records_get_consecutive_offsets_and_come_back(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    assert append(log, "a", "b").first_offset == 0
    result = append(log, "c", leader_epoch=4)
    assert (result.first_offset, result.last_offset, log.log_end_offset) == (2, 2, 3)
    assert contents(log) == [(0, "a"), (1, "b"), (2, "c")]
    assert read_header(log.read(2, 100, upper_bound=3).records.read()).leader_epoch == 4


def test_an_offset_inside_a_batch_returns_the_whole_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, "a")
    append(log, "b", "c", "d")
    data = log.read(2, 1 << 20, upper_bound=4).records.read()
    assert [header.base_offset for _, header in batches(data)] == [1]


def test_a_read_stops_at_the_upper_bound(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", LogConfig())
    for value in "abcdef":
        append(log, value)
    for upper_bound in range(7):
        data = log.read(0, 1 << 20, upper_bound=upper_bound).records.read()
        assert [header.base_offset for _, header in batches(data)] == list(range(upper_bound))


def test_upper_bounds_and_offsets_are_found_beyond_the_remembered_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", LogConfig(index_interval_bytes=300))
    for number in range(1500):  # more than the segment keeps in mind
        append(log, str(number))
    for offset, upper_bound in [(0, 3), (7, 1100), (500, 501), (1000, 1400), (1400, 1500), (1499, 1500)]:
        data = log.read(offset, 1 << 20, upper_bound=upper_bound).records.read()
        found = [header.base_offset for _, header in batches(data)]
        assert found == list(range(offset, upper_bound))


def test_max_bytes_cuts_but_the_first_batch_comes_whole_if_asked(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, "a" * 50)
    append(log, "b")
    first = len(batch("a" * 50))
    assert log.read(0, 10, upper_bound=2, min_one_batch=True).records.size == first
    assert log.read(0, 10, upper_bound=2, min_one_batch=False).records.size == 0
    assert log.read(0, first + 5, upper_bound=2, min_one_batch=False).records.size == first + 5


def test_reading_at_the_end_is_empty_and_past_it_an_error(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, "a")
    assert log.read(1, 100, upper_bound=1).records.size == 0
    for offset in (-1, 2):
        with pytest.raises(KafkaError) as refused:
            log.read(offset, 100, upper_bound=1)
        assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_tail_read_touches_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, "a")
    append(log, "b")

    def forbidden(*_: object) -> bytes:
        raise AssertionError("a tail read went to the file")

    monkeypatch.setattr(os, "pread", forbidden)
    monkeypatch.setattr(os, "open", forbidden)
    assert log.read(1, 1 << 20, upper_bound=2).records.size > 0


def test_rolls_by_size(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    for number in range(40):
        append(log, f"value {number}")
    assert len(log.segments) > 3
    assert all(segment.size <= SMALL.segment_bytes for segment in log.segments)
    assert values_of(contents(log)) == [f"value {number}" for number in range(40)]
    names = sorted(path.name for path in (tmp_path / "orders-0").glob("*.log"))
    assert names == [f"{segment.base_offset:020d}.log" for segment in log.segments]


def test_batches_larger_than_a_segment_are_refused(tmp_path: Path) -> None:
    """As by Apache Kafka, which refuses them as a follower too, and would never catch up."""
    log = open_log(tmp_path / "orders-0", LogConfig(segment_bytes=200))
    with pytest.raises(KafkaError) as refused:
        append(log, "x" * 200)
    assert refused.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert (log.log_end_offset, log.files.size_bytes) == (0, 0)
    assert append(log, "x" * 100).first_offset == 0


def test_a_batch_that_grows_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    """The topic has another codec than the producer. What counts is what is written."""
    log = open_log(tmp_path / "orders-0", LogConfig(segment_bytes=200))
    packed = batch("x" * 200, compression=Codec.GZIP)
    assert len(packed) < 200
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(packed, leader_epoch=0, rules=replace(RULES, compression_type=Codec.NONE))
    assert refused.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.append_as_leader(packed, leader_epoch=0, rules=RULES).first_offset == 0


def test_rolls_by_record_time(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", LogConfig(segment_ms=1000))
    append(log, "a", timestamp=START_MS)
    append(log, "b", timestamp=START_MS + 1000)
    assert len(log.segments) == 1
    append(log, "c", timestamp=START_MS + 1001)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_rolls_when_an_index_is_full(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", LogConfig(segment_index_bytes=36, index_interval_bytes=0))
    for number in range(10):
        append(log, str(number), timestamp=START_MS + number)
    assert [segment.base_offset for segment in log.segments] == [0, 3, 6, 9]
    assert all(os.stat(segment.time_index.path).st_size <= 36 for segment in log.segments)


def test_a_follower_rolls_before_offsets_outgrow_the_index(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    log.append_as_follower(batch("far", base_offset=0))
    far = memoryview(bytearray(batch("farther")))
    far[:8] = (2**31 + 5).to_bytes(8, "big")
    log.append_as_follower(far)
    assert [segment.base_offset for segment in log.segments] == [0, 2**31 + 5]


def test_a_follower_keeps_the_leaders_offsets_and_epochs(tmp_path: Path) -> None:
    leader = open_log(tmp_path / "leader")
    for number in range(20):
        append(leader, f"value {number}", leader_epoch=number // 8)
    follower = open_log(tmp_path / "follower")
    while follower.log_end_offset < leader.log_end_offset:
        fetched = leader.read(follower.log_end_offset, 333, upper_bound=leader.log_end_offset).records.read()
        follower.append_as_follower(memoryview(fetched))
    assert contents(follower) == contents(leader)
    assert follower.epochs.entries == leader.epochs.entries == ((0, 0), (1, 8), (2, 16))


def test_one_fetch_larger_than_a_segment_is_spread(tmp_path: Path) -> None:
    leader = open_log(tmp_path / "leader", LogConfig())
    for number in range(40):
        append(leader, f"value {number}")
    fetched = leader.read(0, 1 << 20, upper_bound=40).records.read()
    follower = open_log(tmp_path / "follower")
    follower.append_as_follower(memoryview(fetched))
    assert contents(follower) == contents(leader)
    assert all(segment.size <= SMALL.segment_bytes for segment in follower.segments)


def test_a_follower_refuses_what_does_not_follow_or_is_damaged(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, "a", "b")
    with pytest.raises(KafkaError) as refused:
        log.append_as_follower(batch("again"))
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    damaged = batch("next")
    damaged[:8] = (2).to_bytes(8, "big")
    damaged[-2] ^= 1
    with pytest.raises(KafkaError) as refused:
        log.append_as_follower(damaged)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert log.log_end_offset == 2


def test_truncation_drops_whole_batches_and_epochs(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    for number in range(40):
        append(log, f"value {number}", leader_epoch=number // 10)
    assert log.truncate_to(25)
    assert log.log_end_offset == 25
    assert values_of(contents(log)) == [f"value {number}" for number in range(25)]
    assert log.epochs.latest_epoch == 2
    assert not log.truncate_to(30)
    assert append(log, "again", leader_epoch=7).first_offset == 25
    assert contents(log)[-1] == (25, "again")


def test_truncating_inside_a_batch_drops_it_all_and_goes_on_there(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, "a", "b", "c")
    log.truncate_to(2)
    assert (log.log_end_offset, contents(log)) == (2, [])
    assert append(log, "d").first_offset == 2
    assert contents(log) == [(2, "d")]


def test_starting_over_at_an_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    for number in range(20):
        append(log, f"value {number}", producer_id=3, producer_epoch=0, base_sequence=number)
    log.truncate_fully_and_start_at(100)
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point <= 100) == (100, 100, True)
    assert (log.epochs.entries, log.producers.entries) == ((), {})
    append(log, "first again")
    assert contents(log) == [(100, "first again")]
    assert [path.name for path in (tmp_path / "orders-0").glob("*.log")] == [f"{100:020d}.log"]


def test_retention_by_time_size_and_start(tmp_path: Path) -> None:
    clock = ManualClock(START_MS)
    log = open_log(tmp_path / "orders-0", LogConfig(segment_bytes=500, retention_ms=1000), clock=clock)
    for number in range(30):
        append(log, f"value {number}", timestamp=START_MS + number)
    count = len(log.segments)
    assert log.delete_expired(START_MS + 1000, high_watermark=30) == 0
    assert log.delete_expired(START_MS + 1020, high_watermark=0) == 0, "nothing above the high watermark goes"
    gone = log.delete_expired(START_MS + 1020, high_watermark=30)
    assert 0 < gone < count
    assert log.log_start_offset == log.segments[0].base_offset == contents(log)[0][0]

    log.update_config(LogConfig(segment_bytes=500, retention_ms=-1, retention_bytes=log.files.size_bytes - 1))
    assert log.delete_expired(START_MS, high_watermark=30) == 0, "only what is wholly in excess goes"
    log.update_config(LogConfig(segment_bytes=500, retention_ms=-1, retention_bytes=450))
    assert log.delete_expired(START_MS, high_watermark=30) > 0
    assert log.files.size_bytes >= 450

    log.maybe_advance_log_start(30)
    log.update_config(LogConfig(segment_bytes=500, retention_ms=-1, cleanup_policy=frozenset({"compact"})))
    log.delete_expired(START_MS, high_watermark=30)
    assert len(log.segments) == 1
    assert contents(log) == []


def test_a_log_that_expires_whole_goes_on_at_its_end(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", LogConfig(retention_ms=10))
    append(log, "a")
    assert log.delete_expired(START_MS + 11, high_watermark=1) == 1
    assert (log.log_start_offset, log.log_end_offset, log.files.size_bytes) == (1, 1, 0)
    assert append(log, "b").first_offset == 1


def test_a_slice_outlives_its_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", LogConfig(retention_ms=10))
    append(log, "a")
    records = log.read(0, 1000, upper_bound=1).records
    log.delete_expired(START_MS + 11, high_watermark=1)
    assert not list((tmp_path / "orders-0").glob("00000000000000000000.log*"))
    assert [header.base_offset for _, header in batches(records.read())] == [0]


def test_deleted_records_are_out_of_range(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    for number in range(10):
        append(log, f"value {number}")
    assert log.maybe_advance_log_start(4)
    assert not log.maybe_advance_log_start(3)
    with pytest.raises(KafkaError):
        log.read(3, 100, upper_bound=10)
    assert contents(log)[0] == (4, "value 4")
    with pytest.raises(KafkaError):
        log.maybe_advance_log_start(11)


def test_lookup_by_timestamp_finds_the_first_record_not_older(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    for number in range(50):
        append(log, "x", "y", timestamp=START_MS + 10 * number)
    assert log.find_offset_by_timestamp(START_MS - 5) == (0, START_MS)
    assert log.find_offset_by_timestamp(START_MS + 101) == (22, START_MS + 110)
    assert log.find_offset_by_timestamp(START_MS + 490) == (98, START_MS + 490)
    assert log.find_offset_by_timestamp(START_MS + 491) is None
    assert log.max_timestamp() == (98, START_MS + 490)
    log.maybe_advance_log_start(23)
    assert log.find_offset_by_timestamp(0) == (23, START_MS + 110)


def test_a_retry_is_answered_with_its_first_place(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    for number in range(3):
        append(log, f"value {number}", producer_id=9, producer_epoch=0, base_sequence=number)
    again = append(log, "value 1", producer_id=9, producer_epoch=0, base_sequence=1)
    assert (again.first_offset, again.last_offset, again.is_duplicate) == (1, 1, True)
    assert log.log_end_offset == 3


def test_a_refused_sequence_leaves_no_trace(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, "a", producer_id=9, producer_epoch=0, base_sequence=0)
    with pytest.raises(KafkaError) as refused:
        append(log, "c", producer_id=9, producer_epoch=0, base_sequence=2)
    assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert contents(log) == [(0, "a")]
    assert append(log, "b", producer_id=9, producer_epoch=0, base_sequence=1).first_offset == 1


def test_flush_moves_the_recovery_point(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", LogConfig(flush_messages=3))
    append(log, "a")
    append(log, "b")
    assert log.recovery_point == 0
    append(log, "c")
    assert log.recovery_point == 3
    log.truncate_to(1)
    assert log.recovery_point == 1


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_failed_write_is_cut_back_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    failures: list[Path] = []
    log = open_log(tmp_path / "orders-0", on_failure=lambda directory, _: failures.append(directory))
    append(log, "a")
    size = log.files.size_bytes

    real = os.pwrite

    def half_then_fail(fd: int, data: memoryview, position: int) -> int:
        if position > size:
            raise OSError(code, os.strerror(code))
        return real(fd, bytes(data)[: len(data) // 2], position)

    monkeypatch.setattr(segment_module, "pwrite", half_then_fail)
    with pytest.raises(KafkaError) as refused:
        append(log, "b")
    monkeypatch.undo()
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert failures == [tmp_path]
    assert os.stat(log.segments[-1].path).st_size == size
    assert contents(log) == [(0, "a")]
    with pytest.raises(KafkaError):
        append(log, "c")
    assert contents(open_log(tmp_path / "orders-0")) == [(0, "a")]


def test_a_failed_fsync_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "orders-0", LogConfig(flush_messages=1))
    calls = []

    def fail(fd: int) -> None:
        calls.append(fd)
        raise OSError(errno.EIO, "Input/output error")

    append(log, "a")
    monkeypatch.setattr(segment_module.os, "fsync", fail)
    with pytest.raises(KafkaError) as refused:
        append(log, "b")
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(KafkaError):
        append(log, "c")
    log.flush()
    assert len(calls) == 1
    assert log.recovery_point == 1


def test_few_descriptors_however_many_segments(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", LogConfig(segment_bytes=100), background=NEVER)
    for number in range(600):
        append(log, f"value {number}")
    assert len(log.segments) == 600
    assert len(contents(log)) == 600
    assert len(os.listdir("/proc/self/fd")) < 400


def test_deleting_removes_the_directory(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, "a")
    log.delete()
    assert not (tmp_path / "orders-0").exists()


def test_preallocated_segments_hold_no_more_than_was_written(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=4096, preallocate=True)
    log = open_log(tmp_path / "orders-0", config)
    append(log, "a")
    assert os.stat(log.segments[0].path).st_size == 4096
    assert contents(open_log(tmp_path / "orders-0", config)) == [(0, "a")], "after a crash"
    log = PartitionLog.open(tmp_path / "orders-0", TP, config)
    log.append_as_leader(batch("b"), leader_epoch=0, rules=RULES)
    log.close()
    assert os.stat(log.segments[0].path).st_size == log.files.size_bytes


def test_the_youngest_record_is_one_that_is_not_deleted(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", LogConfig(index_interval_bytes=0))
    for timestamp in (50, 90, 70, 80, 80):
        append(log, "value", timestamp=START_MS + timestamp)
    log.roll()
    append(log, "value", timestamp=START_MS + 60)
    for start, youngest in ((0, (1, 90)), (1, (1, 90)), (2, (3, 80)), (4, (4, 80)), (5, (5, 60))):
        log.maybe_advance_log_start(start)
        assert log.max_timestamp() == (youngest[0], START_MS + youngest[1])
    log.maybe_advance_log_start(6)
    assert log.max_timestamp() is None
