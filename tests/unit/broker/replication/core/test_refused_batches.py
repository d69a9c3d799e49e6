"""A producer with several batches in flight meets a broker that is not ready for the first one, and is for the second.

Each of these stories ended with acknowledged records that were nowhere, or with a client that renumbers its records.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from replica_stage import ORDERS, ReplicaStage

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.core.producer_state import EVERY_PRODUCER
from odradek.broker.replication.core import refused_batches
from odradek.broker.replication.core.refused_batches import DOUBTS_MAX, REPEATS_MAX, RefusedBatches
from odradek.broker.replication.leader.delayed_produce import AppendOutcome
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import Record

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class Wire:
    """One connection of an idempotent producer."""

    def __init__(self, stage: ReplicaStage) -> None:
        self._stage = stage
        self.refused = RefusedBatches()

    def send(self, sequence: int, *, epoch: int = 0, pid: int = 7, acks: int = 1) -> ErrorCode | int | None:
        """The error, or the offset; None: the answer is still to come."""
        return _told(self.send_and_wait(sequence, epoch=epoch, pid=pid, acks=acks))

    def send_and_wait(self, sequence: int, *, epoch: int = 0, pid: int = 7, acks: int = -1) -> list[AppendOutcome]:
        record = Record(0, 1_700_000_000_000, None, b"value")
        batch = build_batch([record], producer_id=pid, producer_epoch=epoch, base_sequence=sequence)
        answered: list[AppendOutcome] = []
        done = self._stage.replicas.append(
            [(ORDERS, memoryview(bytearray(batch)))],
            acks=acks,
            timeout_ms=5000,
            api_version=9,
            refused=self.refused,
            done=answered.extend,
        )
        return answered if done is None else done


def _told(answered: list[AppendOutcome]) -> ErrorCode | int | None:
    if not answered:
        return None
    (outcome,) = answered
    return outcome.code if isinstance(outcome, KafkaError) else outcome.first_offset


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[ReplicaStage]:
    stage = ReplicaStage(tmp_path)
    yield stage
    stage.close()


@pytest.fixture
def wire(stage: ReplicaStage) -> Wire:
    return Wire(stage)


def test_the_second_batch_is_not_taken_for_the_first_one(stage: ReplicaStage, wire: Wire) -> None:
    stage.become(1, epoch=1)
    assert wire.send(0) is NOT_LEADER
    stage.become(0, epoch=2)
    assert wire.send(1) is NOT_LEADER
    assert wire.send(2) is NOT_LEADER
    assert [wire.send(sequence) for sequence in range(4)] == [0, 1, 2, 3]
    assert not wire.refused


def test_not_even_where_its_state_can_have_been_lost(stage: ReplicaStage, wire: Wire) -> None:
    stage.become(1, epoch=1)
    assert wire.send(720) is NOT_LEADER
    stage.become(0, epoch=2)
    stage.partition.log.producers.forgotten_up_to = EVERY_PRODUCER
    assert wire.send(721) is NOT_LEADER
    assert [wire.send(720), wire.send(721)] == [0, 1]


def test_a_known_producer_is_not_told_to_renumber(stage: ReplicaStage, wire: Wire) -> None:
    stage.become(0, epoch=1)
    assert wire.send(0) == 0
    stage.become(1, epoch=2)
    assert wire.send(1) is NOT_LEADER
    stage.become(0, epoch=3)
    assert wire.send(2) is NOT_LEADER
    assert [wire.send(1), wire.send(2)] == [1, 2]


def test_a_batch_whose_leader_resigned_and_that_was_truncated(stage: ReplicaStage, wire: Wire) -> None:
    stage.become(0, epoch=1)
    waiting = wire.send_and_wait(0)
    assert waiting == []
    stage.become(1, epoch=2)
    assert _told(waiting) is NOT_LEADER
    stage.partition.truncate_to(0, leader_epoch=2)
    stage.become(0, epoch=3)
    assert wire.send(1) is NOT_LEADER
    assert [wire.send(0), wire.send(1)] == [0, 1]


def test_a_batch_whose_leader_resigned_and_that_was_kept(stage: ReplicaStage, wire: Wire) -> None:
    stage.become(0, epoch=1)
    waiting = wire.send_and_wait(0)
    stage.become(1, epoch=2)
    assert _told(waiting) is NOT_LEADER
    stage.become(0, epoch=3)
    assert wire.send(1) == 1, "the one before it is in the log"
    assert wire.send(0) == 0, "and recognised"
    assert stage.partition.log.log_end_offset == 2


def test_another_connection_is_judged_by_the_log_alone(stage: ReplicaStage, wire: Wire) -> None:
    stage.become(1, epoch=1)
    assert wire.send(0) is NOT_LEADER
    stage.become(0, epoch=2)
    other = Wire(stage)
    assert other.send(0) == 0
    assert wire.send(1) == 1, "what was refused here has come by the other connection"


def test_another_epoch_another_producer_and_no_producer_are_not_held_back(stage: ReplicaStage, wire: Wire) -> None:
    stage.become(1, epoch=1)
    assert wire.send(0) is NOT_LEADER
    stage.become(0, epoch=2)
    assert wire.send(0, pid=8) == 0
    assert wire.send(0, epoch=1) == 1
    assert wire.send(-1, pid=-1, epoch=-1) == 2


def test_other_refusals_hold_nobody_back(stage: ReplicaStage, wire: Wire) -> None:
    stage.become(0, epoch=0, isr=(0,), replicas=(0,))
    assert wire.send(5) is OUT_OF_ORDER
    assert not wire.refused


def test_a_gap_after_leadership_moved_gets_the_benefit_of_the_doubt(stage: ReplicaStage, wire: Wire) -> None:
    """The batch before it was refused by the former leader, or lost with it, and comes behind."""
    stage.become(0, epoch=3)
    assert [wire.send(1), wire.send(2)] == [NOT_LEADER] * 2
    assert [wire.send(sequence) for sequence in range(3)] == [0, 1, 2]
    assert [wire.send(4) for _ in range(DOUBTS_MAX + 2)] == [NOT_LEADER] * DOUBTS_MAX + [OUT_OF_ORDER] * 2


def test_a_gap_in_the_first_epoch_gets_it_too_where_there_are_other_replicas(stage: ReplicaStage, wire: Wire) -> None:
    """Leadership may have moved away and come back, before this broker was told of either."""
    stage.become(0, epoch=0)
    assert wire.send(0) == 0
    reconnected = Wire(stage)
    assert [reconnected.send(2), reconnected.send(1), reconnected.send(2)] == [NOT_LEADER, 1, 2]


def test_a_producer_that_may_have_been_known_is_believed_after_some_doubt(stage: ReplicaStage, wire: Wire) -> None:
    """It expired, or its first batch is on its way: half a second tells."""
    stage.become(0, epoch=3)
    stage.partition.log.producers.forgotten_up_to = EVERY_PRODUCER
    assert [wire.send(7) for _ in range(DOUBTS_MAX + 1)] == [NOT_LEADER] * DOUBTS_MAX + [0]
    assert wire.send(8) == 1
    pipelined = Wire(stage)
    answers = [pipelined.send(sequence, pid=9) for _ in range(DOUBTS_MAX) for sequence in (7, 8)]
    assert answers == [NOT_LEADER] * 2 * DOUBTS_MAX
    assert pipelined.send(8, pid=9) is NOT_LEADER, "never the second one before the first"
    assert [pipelined.send(7, pid=9), pipelined.send(8, pid=9)] == [2, 3]
    overtaken = Wire(stage)
    assert overtaken.send(1, pid=8) is NOT_LEADER
    assert [overtaken.send(0, pid=8), overtaken.send(1, pid=8)] == [4, 5]


def test_a_producer_that_may_have_been_known_is_believed_at_once_by_the_only_replica(
    stage: ReplicaStage, wire: Wire
) -> None:
    stage.become(0, epoch=0, isr=(0,), replicas=(0,))
    stage.partition.log.producers.forgotten_up_to = EVERY_PRODUCER
    assert wire.send(7) == 0


def test_a_sequence_that_was_there_before_gets_no_benefit(stage: ReplicaStage, wire: Wire) -> None:
    stage.become(0, epoch=3)
    for sequence in range(14):
        wire.send(sequence)
    assert wire.send(1) is OUT_OF_ORDER


def test_a_client_that_goes_on_without_its_batch_learns_that_its_sequence_is_wrong(
    stage: ReplicaStage, wire: Wire
) -> None:
    stage.become(1, epoch=1)
    assert wire.send(0) is NOT_LEADER
    stage.become(0, epoch=2)
    answers = [wire.send(1) for _ in range(REPEATS_MAX + 2)]
    assert answers == [NOT_LEADER] * REPEATS_MAX + [OUT_OF_ORDER] * 2


def test_the_memory_of_a_connection_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_batches, "REFUSALS_MAX", 10)
    refused = RefusedBatches()
    record = Record(0, 0, None, b"value")
    for pid in range(30):
        batch = build_batch([record], producer_id=pid, producer_epoch=0, base_sequence=3)
        refused.note(TopicPartition("orders", 1), memoryview(batch), KafkaError(NOT_LEADER))
    assert len(refused) == 10
