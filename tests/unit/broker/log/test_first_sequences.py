"""First sequence of a producer that the log doesn't know: sequence 0, or anywhere if its state can have been lost."""

from pathlib import Path

import pytest
from log_building import START_MS, append, open_log

from odradek.base.clock import ManualClock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import Record

DAY_MS = 86_400_000
CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100)


def write(log: PartitionLog, *, pid: int = 1, sequence: int = 0) -> None:
    append(log, "value", producer_id=pid, producer_epoch=0, base_sequence=sequence)


def takes_first(log: PartitionLog, sequence: int, *, pid: int = 99) -> bool:
    try:
        write(log, pid=pid, sequence=sequence)
    except KafkaError as error:
        if error.code is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            raise
        return False
    return True


def fetched(offset: int) -> memoryview:
    record = Record(offset, START_MS, None, b"value")
    return memoryview(build_batch([record], base_offset=offset, producer_id=1, producer_epoch=0, base_sequence=offset))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "orders-0"


def test_in_an_empty_log(directory: Path) -> None:
    log = open_log(directory, CONFIG)
    assert not takes_first(log, 721)
    assert log.log_end_offset == 0
    assert takes_first(log, 0)


@pytest.mark.parametrize("clean", [True, False])
def test_in_a_young_log_after_a_restart(directory: Path, clean: bool) -> None:
    log = open_log(directory, CONFIG)
    for sequence in range(12):
        write(log, sequence=sequence)
    log.close(clean)
    log = open_log(directory, CONFIG, clean=clean)
    assert not takes_first(log, 721)
    assert takes_first(log, 12, pid=1)


def test_in_a_log_that_is_older_than_producers_are_kept(directory: Path) -> None:
    log = open_log(directory, CONFIG)
    for sequence in range(12):
        write(log, sequence=sequence)
    log.close()
    assert takes_first(open_log(directory, CONFIG, clean=True, clock=ManualClock(START_MS + DAY_MS)), 721)


def test_after_records_were_deleted_and_a_restart(directory: Path) -> None:
    log = open_log(directory, CONFIG)
    for sequence in range(12):
        write(log, sequence=sequence)
    log.maybe_advance_log_start(3)
    assert not takes_first(log, 721), "the entries in memory are all there"
    log.close()
    assert takes_first(open_log(directory, CONFIG, clean=True, log_start_offset=3), 721)


def test_in_a_replica_that_began_past_the_first_offset(directory: Path) -> None:
    log = open_log(directory, CONFIG)
    log.truncate_fully_and_start_at(500)
    assert takes_first(log, 721)
    log.truncate_fully_and_start_at(0)
    assert not takes_first(log, 721), "it copies everything from the first offset on"


def test_in_a_replica_of_a_compacted_log(directory: Path) -> None:
    log = open_log(directory, CONFIG)
    log.append_as_follower(fetched(0))
    assert not takes_first(log, 721)
    log.append_as_follower(fetched(7))
    assert takes_first(log, 721)


def test_after_a_truncation_to_an_empty_log(directory: Path) -> None:
    """The records that were cut off were not committed, so that their producer sends them again."""
    log = open_log(directory, CONFIG)
    for sequence in range(12):
        write(log, sequence=sequence)
    log.truncate_to(0)
    assert not takes_first(log, 12, pid=1)
    assert takes_first(log, 0, pid=1)


def test_retries_are_recognised_after_a_clean_stop_and_after_a_truncation(directory: Path) -> None:
    log = open_log(directory, CONFIG)
    for sequence in range(12):
        write(log, sequence=sequence)
    log.close()
    log = open_log(directory, CONFIG, clean=True)
    again = append(log, "value", producer_id=1, producer_epoch=0, base_sequence=8)
    assert again.is_duplicate
    assert again.first_offset == 8
    write(log, sequence=12)
    write(log, sequence=13)
    log.truncate_to(13)
    again = append(log, "value", producer_id=1, producer_epoch=0, base_sequence=9)
    assert again.is_duplicate
    assert again.first_offset == 9
