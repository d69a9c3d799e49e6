"""Markers end transactions: what they fence, when they are answered, and what readers see meanwhile."""

import struct
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from partition_stage import NOW_MS, TransactionStage, code_of
from replica_stage import ORDERS

from odradek.base.config.topic_config import TopicConfig
from odradek.base.errors import ErrorCode
from odradek.broker.api.handlers.list_offsets import _partition
from odradek.broker.replication.committed_log import CommittedLog
from odradek.broker.replication.leader.marker_writer import MarkerToWrite, MarkerWriter
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.record_batch import batches, build_batch
from odradek.protocol.records import ControlType, Record, control_key
from odradek.protocol.transaction_markers import EndTransactionMarker, build_marker


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[TransactionStage]:
    stage = TransactionStage(tmp_path)
    yield stage
    stage.close()


def aborted(stage: TransactionStage, offset: int = 0) -> list[tuple[int, int]]:
    (outcome,) = stage.read_committed(offset)
    assert outcome.found is not None
    return [(transaction.producer_id, transaction.first_offset) for transaction in outcome.found.aborted]


def test_a_marker_is_answered_when_all_replicas_have_it(stage: TransactionStage) -> None:
    stage.send("a", 0)
    answer = stage.end()
    assert answer == []
    stage.replicate()
    assert answer == [ErrorCode.NONE]
    assert stage.stable == 2


def test_a_marker_that_is_not_replicated_in_time_is_not_done(stage: TransactionStage) -> None:
    stage.send("a", 0)
    answer = stage.end()
    stage.passes(5_000)
    assert answer == [ErrorCode.REQUEST_TIMED_OUT]


def test_the_stable_offset_waits_for_the_marker_to_be_replicated(stage: TransactionStage) -> None:
    stage.send("a", 0)
    stage.replicate()
    assert (stage.partition.high_watermark, stage.stable) == (1, 0)
    stage.end()
    assert stage.stable == 0
    stage.replicate()
    assert stage.stable == 2


def test_an_older_epoch_of_the_producer_is_refused(stage: TransactionStage) -> None:
    stage.send("a", 0, epoch=3)
    assert stage.end(epoch=2) == [ErrorCode.INVALID_PRODUCER_EPOCH]


def test_an_older_coordinator_is_fenced(stage: TransactionStage) -> None:
    stage.send("a", 0)
    stage.end(coordinator_epoch=4)
    assert stage.end(coordinator_epoch=3) == [ErrorCode.TRANSACTION_COORDINATOR_FENCED]


def test_a_marker_of_a_newer_epoch_fences_the_producer(stage: TransactionStage) -> None:
    stage.send("a", 0)
    stage.end(committed=False, epoch=1)
    assert code_of(stage.send("b", 1)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_kafka_19999_a_repeated_marker_is_done_and_written_once(stage: TransactionStage) -> None:
    stage.send("a", 0)
    first, again = stage.end(), stage.end()
    assert (first, again) == ([], []), "what it repeats is not replicated either"
    stage.replicate()
    assert (first, again) == ([ErrorCode.NONE], [ErrorCode.NONE])
    assert stage.partition.log.log_end_offset == 2
    assert stage.end() == [ErrorCode.NONE]


def test_a_repeated_marker_of_a_newer_coordinator_is_written(stage: TransactionStage) -> None:
    """Its epoch must outlive this broker, or the former coordinator could end the next transaction."""
    stage.send("a", 0)
    stage.end(coordinator_epoch=0)
    stage.end(coordinator_epoch=1)
    assert stage.partition.log.log_end_offset == 3
    assert stage.partition.log.producers.entries[1].coordinator_epoch == 1


def test_a_marker_needs_enough_replicas(tmp_path: Path) -> None:
    stage = TransactionStage(tmp_path, min_insync_replicas="2")
    stage.send("a", 0)
    stage.become(0, 1, isr=(0,))
    assert stage.end() == [ErrorCode.NOT_ENOUGH_REPLICAS]
    stage.close()


def test_a_marker_fits_into_every_topic(tmp_path: Path) -> None:
    """No limit of a topic may keep a transaction open."""
    stage = TransactionStage(tmp_path, compression_type="gzip")
    stage.send("a", 0)
    stage.roles.update_config([ORDERS], TopicConfig.of(stage.config, {"max.message.bytes": "10"}))
    stage.end()
    stage.replicate()
    assert stage.stable == 2
    stage.close()


def test_kafka_5376_a_delayed_fetch_is_completed_by_the_stable_offset_with_its_aborted_list(
    stage: TransactionStage,
) -> None:
    stage.send("a", 0)
    stage.replicate()
    waiting = stage.read_committed(0, wait_ms=60_000)
    assert waiting == []
    stage.end(committed=False)
    assert waiting == []
    stage.replicate()
    (outcome,) = waiting
    assert outcome.found is not None
    assert outcome.size > 0
    assert [(a.producer_id, a.first_offset) for a in outcome.found.aborted] == [(1, 0)]


def test_kafka_9807_a_watermark_that_moves_between_two_reads_shows_nothing_unstable(
    stage: TransactionStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.send("a", 0, producer_id=1)
    stage.end(producer_id=1)
    stage.replicate()
    end = stage.partition.high_watermark
    stable = CommittedLog.last_stable_offset

    def moved_meanwhile(replica: CommittedLog, watermark: int) -> int:
        monkeypatch.setattr(CommittedLog, "last_stable_offset", stable)  # once
        stage.send("b", 0, producer_id=2)
        stage.replicate()
        stage.end(producer_id=2)
        stage.replicate()
        return stable(replica, watermark)

    monkeypatch.setattr(CommittedLog, "last_stable_offset", moved_meanwhile)
    (outcome,) = stage.read_committed()
    found = outcome.found
    assert found is not None
    assert found.records is not None
    assert stage.partition.high_watermark == end + 2
    assert (found.high_watermark, found.last_stable_offset) == (end, end)
    assert [header.last_offset for _, header in batches(found.records.read())][-1] == end - 1


@pytest.mark.parametrize(("isolation", "found"), [(0, 1), (1, -1)])
def test_kafka_5522_a_lookup_by_time_ends_at_the_stable_offset(
    stage: TransactionStage, isolation: int, found: int
) -> None:
    stage.send("a", 0, transactional=False, producer_id=-1, epoch=-1)
    stage.clock.advance(10)
    stage.send("b", 0, timestamp=NOW_MS + 10)
    stage.replicate()
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[
            ListOffsetsTopic(
                name=ORDERS.topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=NOW_MS + 5)]
            )
        ],
    )
    asked = request.topics[0].partitions[0]
    ctx = SimpleNamespace(broker=SimpleNamespace(replicas=stage.replicas), version=7)
    assert _partition(ORDERS.topic, asked, request, ctx).offset == found  # type: ignore[arg-type]


def test_franz_go_1348_aborted_transactions_are_sorted_by_first_offset(stage: TransactionStage) -> None:
    """They overlap, and end in the reverse order of their beginning."""
    for producer_id in (1, 2, 3):
        stage.send("x", 0, producer_id=producer_id)
    for producer_id in (3, 2, 1):
        stage.end(producer_id=producer_id, committed=False)
    stage.replicate()
    assert aborted(stage) == [(1, 0), (2, 1), (3, 2)]
    assert aborted(stage, offset=4) == [(1, 0), (2, 1)], "what is over before the offset is left out"


def test_followers_keep_the_same_state(stage: TransactionStage, tmp_path: Path) -> None:
    follower = TransactionStage(tmp_path / "follower")
    follower.become(1, 1)
    stage.send("a", 0, producer_id=1)
    stage.send("b", 0, producer_id=2)
    stage.send("c", 0, producer_id=3)
    stage.end(producer_id=2, committed=False)
    stage.replicate()
    log = stage.partition.log
    records = log.read(0, 1 << 20, upper_bound=log.log_end_offset).records.read()
    follower.partition.append_fetched(
        memoryview(bytearray(records)), leader_epoch=1, high_watermark=4, log_start_offset=0
    )
    assert follower.partition.log.producers.entries == log.producers.entries
    assert follower.stable == stage.stable == 0
    assert follower.partition.log.aborted_transactions(0, 4) == log.aborted_transactions(0, 4)
    follower.close()


def test_redpanda_7544_the_stable_offset_does_not_go_back_with_a_truncation_and_an_election(
    stage: TransactionStage,
) -> None:
    """The cut makes the log look for its transactions again. Those that ended below the watermark stay ended."""
    stage.send("a", 0)
    stage.end()
    stage.replicate()
    assert stage.stable == 2
    stage.send("not replicated", 1)
    stage.become(1, 1)
    stage.partition.truncate_to(2, leader_epoch=1)
    assert stage.stable == 2
    stage.become(0, 2)
    assert stage.stable == 2


def test_a_late_transaction_is_told(stage: TransactionStage) -> None:
    producers = stage.partition.log.producers
    assert not producers.has_transaction_since(2**62)
    stage.send("a", 0)
    assert producers.has_transaction_since(NOW_MS + 1)
    assert not producers.has_transaction_since(NOW_MS - 1)


def test_retention_within_an_open_transaction_leaves_the_stable_offset_inside_of_the_log(
    stage: TransactionStage,
) -> None:
    for sequence in range(3):
        stage.send("x", sequence)
    stage.replicate()
    assert stage.stable == 0
    stage.partition.delete_records_before(2)
    assert (stage.stable, stage.partition.high_watermark) == (2, 3)


class Listener:
    def __init__(self) -> None:
        self.told: list[tuple[TopicPartition, int, int, bool]] = []

    def transaction_completed(
        self, partition: TopicPartition, producer_id: int, ended_epoch: int, committed: bool
    ) -> None:
        self.told.append((partition, producer_id, ended_epoch, committed))


def test_each_marker_of_a_request_has_its_own_outcome(stage: TransactionStage) -> None:
    listener = Listener()
    writer = MarkerWriter(stage.replicas, listener, 5_000)
    outcomes: list[list[ErrorCode]] = []
    stage.send("a", 0)
    offsets = TopicPartition("__consumer_offsets", 3)
    writer.write(
        [
            MarkerToWrite(EndTransactionMarker(1, 0, 0, True), ORDERS),
            MarkerToWrite(EndTransactionMarker(1, 0, 0, True), offsets),
            MarkerToWrite(EndTransactionMarker(-1, 0, 0, True), ORDERS),
        ],
        outcomes.append,
    )
    assert outcomes == []
    stage.replicate()
    assert outcomes == [[ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_REQUEST]]
    assert listener.told == []
    writer.write([], outcomes.append)
    assert outcomes[-1] == []


def test_markers_of_one_partition_are_one_append_and_have_outcomes_of_their_own(stage: TransactionStage) -> None:
    for producer_id in (1, 2, 3):
        stage.send("a", 0, producer_id=producer_id, epoch=1)
    end = stage.partition.log.log_end_offset
    settled: dict[int, ErrorCode] = {}
    MarkerWriter(stage.replicas, Listener(), 5_000).write_each(
        [
            MarkerToWrite(EndTransactionMarker(1, 1, 0, True), ORDERS),
            MarkerToWrite(EndTransactionMarker(2, 0, 0, True), ORDERS),  # of an older epoch
            MarkerToWrite(EndTransactionMarker(3, 1, 0, False), ORDERS),
            MarkerToWrite(EndTransactionMarker(3, 2, 0, False), ORDERS),  # of the same producer: an append of its own
        ],
        settled.__setitem__,
    )
    assert stage.partition.log.log_end_offset == end + 3
    stage.replicate()
    assert settled == {0: ErrorCode.NONE, 1: ErrorCode.INVALID_PRODUCER_EPOCH, 2: ErrorCode.NONE, 3: ErrorCode.NONE}
    assert stage.stable == 1, "the second producer's is open"
    assert [(each.producer_id, each.first_offset) for each in stage.partition.log.aborted_transactions(0, 9)] == [
        (3, 2)
    ]


def test_a_marker_is_the_batch_that_any_other_builder_makes() -> None:
    for is_committed in (True, False):
        record = Record(0, NOW_MS, control_key(ControlType(is_committed)), struct.pack(">hi", 0, 70_000))
        built = build_batch([record], producer_id=2**40, producer_epoch=7, transactional=True, control=True)
        assert build_marker(EndTransactionMarker(2**40, 7, 70_000, is_committed), NOW_MS) == built
