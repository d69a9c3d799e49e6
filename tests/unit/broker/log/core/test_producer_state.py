"""Idempotent and transactional producers: sequences, epochs, expiry, open transactions, and the snapshot file."""

import struct
from pathlib import Path

import pytest
from crc32c import crc32c

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.core import deleted_producers
from odradek.broker.log.core.batch_info import BatchInfo, batch_info
from odradek.broker.log.core.producer_entry import AppendedBatch, ProducerEntry
from odradek.broker.log.core.producer_state import EVERY_PRODUCER, MAX_PRODUCERS, ProducerStates
from odradek.broker.log.core.validation import Origin
from odradek.broker.log.core.verification import VERIFICATION_OFF
from odradek.broker.log.files.producer_snapshot import ProducerSnapshots, read_snapshot, write_snapshot
from odradek.format.producer_snapshot import CorruptSnapshot
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import build_batch, read_header
from odradek.protocol.records import ControlType, Record, control_key

LAST = 2**31 - 1


def info(offset: int, sequence: int, *, count: int = 1, epoch: int = 0, pid: int = 1, txn: bool = False) -> BatchInfo:
    last_sequence = (sequence + count - 1) % 2**31
    return BatchInfo(
        offset, offset + count - 1, 1000 + offset, 0, 100, pid, epoch, sequence, last_sequence, txn, is_control=False
    )


def write(states: ProducerStates, batch: BatchInfo, origin: Origin | None = Origin.CLIENT) -> None:
    states.commit(states.stage([batch], b"", origin, guard=VERIFICATION_OFF), batch.last_offset + 1)


def refused(states: ProducerStates, batch: BatchInfo) -> ErrorCode:
    before = dict(states.entries)
    with pytest.raises(KafkaError) as error:
        states.stage([batch], b"", Origin.CLIENT)
    assert states.entries == before
    return error.value.code


def marker(offset: int, kind: ControlType, *, pid: int = 1, coordinator_epoch: int = 0) -> tuple[BatchInfo, bytes]:
    record = Record(offset, 5000, control_key(kind), struct.pack(">hi", 0, coordinator_epoch))
    data = build_batch(
        [record], base_offset=offset, producer_id=pid, producer_epoch=0, transactional=True, control=True
    )
    return batch_info(read_header(data), offset, 0), data


def test_sequences_must_follow_each_other() -> None:
    states = ProducerStates(10_000)
    write(states, info(0, 0, count=3))
    assert refused(states, info(3, 4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(states, info(3, 3))
    assert states.entries[1].last_sequence == 3


def test_sequences_wrap() -> None:
    states = ProducerStates(10_000)
    states.forgotten_up_to = EVERY_PRODUCER
    write(states, info(0, LAST - 1, count=2))
    write(states, info(2, 0))
    spanning = ProducerStates(10_000)
    spanning.forgotten_up_to = EVERY_PRODUCER
    write(spanning, info(0, LAST - 1, count=4))
    assert spanning.entries[1].last_sequence == 1
    assert spanning.find_duplicate(info(9, LAST - 1, count=4)) is not None
    write(spanning, info(4, 2))


def test_the_last_ten_batches_are_recognised() -> None:
    """Five stored by a leader that resigned before it answered, and five that the client sends to the next one."""
    states = ProducerStates(10_000)
    for number in range(12):
        write(states, info(number * 10, number))
    known = [sequence for sequence in range(13) if states.find_duplicate(info(99, sequence)) is not None]
    assert known == list(range(2, 12))
    duplicate = states.find_duplicate(info(99, 4))
    assert duplicate is not None
    assert (duplicate.first_offset, duplicate.timestamp) == (40, 1040)
    assert refused(states, info(99, 1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_older_epoch_is_fenced_and_a_newer_starts_at_zero() -> None:
    states = ProducerStates(10_000)
    write(states, info(0, 0, epoch=3))
    assert refused(states, info(1, 1, epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(states, info(1, 1, epoch=4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(states, info(1, 0, epoch=4))
    assert len(states.entries[1].batches) == 1


def test_an_unknown_producer_begins_at_zero() -> None:
    states = ProducerStates(10_000)
    assert refused(states, info(0, 721)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(states, info(0, 721, epoch=3)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(states, info(0, 0, epoch=3))


def test_an_unknown_producer_may_begin_anywhere_in_what_others_wrote() -> None:
    """A follower and recovery take what the leader wrote."""
    states = ProducerStates(10_000)
    write(states, info(0, 721), origin=None)
    assert states.entries[1].last_sequence == 721


def test_a_forgotten_producer_may_go_on_anywhere_and_a_younger_one_not() -> None:
    states = ProducerStates(500)
    write(states, info(0, 0, pid=5))
    assert states.remove_expired(2000) == 1
    assert refused(states, info(1, 7, pid=6)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(states, info(1, 7, pid=5))


def test_a_producer_that_had_expired_in_the_snapshot_is_forgotten() -> None:
    states = ProducerStates(500)
    states.load([ProducerEntry(5, 0, -1, 1000, -1, (AppendedBatch(6, 0, 0, 1000),))], 1, now_ms=2000)
    write(states, info(1, 7, pid=5))


def test_an_evicted_producer_is_forgotten() -> None:
    states = ProducerStates(10**9)
    for pid in range(MAX_PRODUCERS + 1):
        write(states, info(pid, 0, pid=pid))
    assert 0 not in states.entries
    write(states, info(MAX_PRODUCERS + 1, 17, pid=0))


def test_a_producer_goes_on_in_a_topic_that_was_created_again() -> None:
    former = ProducerStates(10_000)
    write(former, info(0, 0, count=10, epoch=2))
    states = ProducerStates(10_000)
    states.inherited = former.entries
    assert refused(states, info(0, 11, epoch=2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "10 is missing"
    assert refused(states, info(0, 10, epoch=3)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "a new epoch begins at 0"
    assert refused(states, info(0, 10, epoch=2, pid=2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(states, info(0, 10, epoch=2))
    resent = ProducerStates(10_000)
    resent.inherited = former.entries
    write(resent, info(0, 8, epoch=2))  # stored before, and not acknowledged because the topic was deleted


def test_deleted_producers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deleted_producers, "ENTRIES_MAX", 3)
    kept = deleted_producers.DeletedProducers()
    partitions = [TopicPartition("orders", number) for number in range(3)]
    for tp in partitions:
        kept.keep(tp, {1: ProducerEntry(1), 2: ProducerEntry(2)})
    assert [len(kept.take(tp)) for tp in partitions] == [0, 0, 2]
    assert kept.take(partitions[2]) == {}


def test_silent_producers_expire_but_open_transactions_stay() -> None:
    states = ProducerStates(500)
    write(states, info(0, 0, pid=1))
    write(states, info(1, 0, pid=2, txn=True))
    assert states.remove_expired(1499) == 0
    assert states.remove_expired(1501) == 1
    assert set(states.entries) == {2}


def test_a_flood_of_producers_is_bounded() -> None:
    states = ProducerStates(10**9)
    for pid in range(MAX_PRODUCERS + 10):
        write(states, info(pid, 0, pid=pid))
    assert len(states.entries) <= MAX_PRODUCERS
    assert MAX_PRODUCERS + 9 in states.entries
    assert 0 not in states.entries


def test_transactions_hold_the_last_stable_offset() -> None:
    states = ProducerStates(10_000)
    write(states, info(0, 0, pid=1, txn=True))
    write(states, info(1, 0, pid=2, txn=True))
    transactions = states.transactions
    assert transactions.first_unstable_offset == 0
    assert refused(states, info(2, 1, pid=1)) is ErrorCode.INVALID_TXN_STATE

    staged = states.stage([(batch := marker(2, ControlType.ABORT))[0]], batch[1], Origin.COORDINATOR)
    states.commit(staged, 3)
    (completed,) = staged.completed
    assert (completed.first_offset, completed.last_offset, completed.is_aborted) == (0, 2, True)
    assert completed.last_stable_offset == 1, "the other one is still open"
    assert transactions.first_unstable_offset == 0, "until the marker is replicated"
    states.advance_high_watermark(3)
    assert transactions.first_unstable_offset == 1
    staged = states.stage([(batch := marker(3, ControlType.COMMIT, pid=2))[0]], batch[1], Origin.COORDINATOR)
    states.commit(staged, 4)
    assert not staged.completed[0].is_aborted
    states.advance_high_watermark(4)
    assert transactions.first_unstable_offset is None


def test_a_marker_of_an_older_coordinator_is_fenced() -> None:
    states = ProducerStates(10_000)
    batch, data = marker(0, ControlType.COMMIT, coordinator_epoch=5)
    states.commit(states.stage([batch], data, Origin.COORDINATOR), 1)
    batch, data = marker(1, ControlType.COMMIT, coordinator_epoch=4)
    with pytest.raises(KafkaError) as error:
        states.stage([batch], data, Origin.COORDINATOR)
    assert error.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    states.stage([batch], data, None)  # a replica takes what its leader has


ENTRIES = [
    ProducerEntry(1, 0, -1, 1_700_000_000_000, -1, (AppendedBatch(41, 99, 2, 1_700_000_000_000),)),
    ProducerEntry(2**40, 7, 3, 1_700_000_000_500, 88, ()),
]


def test_snapshots_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "s.snapshot"
    write_snapshot(path, ENTRIES, sync=True)
    assert read_snapshot(path) == ENTRIES
    body = struct.pack(">i", 2)
    body += struct.pack(">qhiqiqiq", 1, 0, 41, 99, 2, 1_700_000_000_000, -1, -1)
    body += struct.pack(">qhiqiqiq", 2**40, 7, -1, -1, 0, 1_700_000_000_500, 3, 88)
    assert path.read_bytes() == struct.pack(">hI", 1, crc32c(body)) + body


def test_a_snapshot_keeps_the_last_five_batches(tmp_path: Path) -> None:
    states = ProducerStates(10**15)
    for number in range(7):
        write(states, info(number * 10, number, epoch=1))
    path = tmp_path / "s.snapshot"
    write_snapshot(path, list(states.entries.values()), sync=False)
    again = ProducerStates(10**15)
    again.load(read_snapshot(path), 61, now_ms=2000)
    assert again.entries == states.entries


def test_any_flipped_byte_of_a_snapshot_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "s.snapshot"
    write_snapshot(path, ENTRIES, sync=False)
    content = path.read_bytes()
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes((content[at] ^ 0x10,)) + content[at + 1 :])
        with pytest.raises(CorruptSnapshot):
            read_snapshot(path)
        path.write_bytes(content[:at])
        with pytest.raises(CorruptSnapshot):
            read_snapshot(path)


def test_a_bad_snapshot_gives_way_to_the_one_before(tmp_path: Path) -> None:
    states = ProducerStates(10**15)
    snapshots = ProducerSnapshots(tmp_path)
    write(states, info(0, 0))
    snapshots.take(states)
    write(states, info(1, 1))
    newest = snapshots.take(states)
    assert newest is not None
    newest.write_bytes(b"noise")
    again = ProducerStates(10**15)
    snapshots = ProducerSnapshots(tmp_path)
    snapshots.load_latest(again, 0, 2, 0)
    assert (again.map_end_offset, again.entries[1].last_sequence) == (1, 0)
    assert snapshots.offsets == (1,)
