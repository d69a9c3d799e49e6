"""Commit of records: acknowledgements, and the view of consumers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from replica_stage import MAX_LAG_MS, ORDERS, ReplicaStage, batch

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.core.append_result import AppendResult
from odradek.broker.replication.core.refused_batches import RefusedBatches
from odradek.broker.replication.leader.delayed_produce import AppendOutcome


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[ReplicaStage]:
    stage = ReplicaStage(tmp_path, min_insync_replicas="2")
    yield stage
    stage.close()


def error_of(answered: list[AppendOutcome]) -> ErrorCode:
    (outcome,) = answered
    assert isinstance(outcome, KafkaError)
    return outcome.code


def test_acks_all_waits_for_the_whole_isr_and_consumers_see_nothing_before(stage: ReplicaStage) -> None:
    stage.become(0, epoch=1)
    stage.fetch(0, replica=1, epoch=1)
    stage.fetch(0, replica=2, epoch=1)
    answered = stage.produce("a", "b")
    waiting_consumer = stage.fetch(0, wait_ms=500)
    stage.fetch(2, replica=1, epoch=1)
    assert not answered, "broker 2 doesn't have it yet"
    assert not waiting_consumer
    assert stage.partition.high_watermark == 0
    stage.fetch(2, replica=2, epoch=1)
    assert isinstance(answered[0], AppendResult)
    assert answered[0].last_offset == 1
    assert waiting_consumer[0].size > 0, "the fetch that commits also answers who waits to read"


def test_acks_one_and_a_lone_replica_are_answered_at_once(tmp_path: Path) -> None:
    stage = ReplicaStage(tmp_path)
    stage.become(0, epoch=1, isr=(0, 1, 2))
    assert isinstance(stage.produce("a", acks=1)[0], AppendResult)
    stage.become(0, epoch=2, isr=(0,), replicas=(0,))
    assert isinstance(stage.produce("b")[0], AppendResult)
    assert stage.partition.high_watermark == 2
    stage.close()


def test_a_follower_that_waits_is_answered_by_the_append(stage: ReplicaStage) -> None:
    stage.become(0, epoch=1)
    following = stage.fetch(0, replica=1, epoch=1, wait_ms=500)
    assert not following
    stage.produce("a", acks=1)
    assert following[0].size > 0
    assert following[0].error is ErrorCode.NONE


def test_a_follower_that_waits_gets_all_batches_of_a_request_at_once(stage: ReplicaStage) -> None:
    stage.become(0, epoch=1)
    following = stage.fetch(0, replica=1, epoch=1, wait_ms=500)
    batches = [batch("a"), batch("b")]
    stage.replicas.append(
        [(ORDERS, records) for records in batches],
        acks=1,
        timeout_ms=5_000,
        api_version=9,
        refused=RefusedBatches(),
        done=lambda outcomes: None,
    )
    assert following[0].size == sum(map(len, batches))


def test_time_is_up(stage: ReplicaStage) -> None:
    stage.become(0, epoch=1)
    answered = stage.produce("a", timeout_ms=1_000)
    stage.passes(1_500)
    assert error_of(answered) is ErrorCode.REQUEST_TIMED_OUT


def test_too_few_in_sync_before_the_append_and_after(stage: ReplicaStage) -> None:
    stage.become(0, epoch=1, isr=(0,))
    assert error_of(stage.produce("a")) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert stage.partition.log.log_end_offset == 0, "nothing was written"
    stage.become(0, epoch=2, isr=(0, 1))
    early, late = (stage.append(value) for value in "ab")
    stage.fetch(1, replica=1, epoch=2)
    stage.passes(MAX_LAG_MS + 1)
    stage.roles.check_replicas()
    stage.confirm(stage.proposed[-1])
    assert stage.partition.isr == (0,)
    assert stage.partition.high_watermark == 1, "under the minimal ISR nothing more is committed"
    assert stage.partition.acknowledgement(1, early.awaited_in) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert stage.partition.acknowledgement(2, late.awaited_in) is None


def test_the_minimal_isr_is_no_more_than_there_are_replicas(stage: ReplicaStage) -> None:
    stage.become(0, epoch=1, isr=(0,), replicas=(0,))
    assert isinstance(stage.produce("a")[0], AppendResult)


def test_a_shrunken_isr_that_still_suffices_commits_what_waited(stage: ReplicaStage) -> None:
    stage.become(0, epoch=1)
    answered = stage.produce("a", timeout_ms=10 * MAX_LAG_MS)
    stage.fetch(0, replica=1, epoch=1)
    stage.passes(MAX_LAG_MS + 1)
    stage.fetch(1, replica=1, epoch=1)
    stage.roles.check_replicas()
    assert stage.proposed[-1].isr == (0, 1)
    assert not answered, "until it is confirmed, broker 2 may be asked to lead"
    stage.confirm(stage.proposed[-1])
    assert isinstance(answered[0], AppendResult)


def test_the_watermark_waits_for_one_who_is_about_to_join(stage: ReplicaStage) -> None:
    """KIP-497: with an expansion on its way, the controller may already count the follower in."""
    stage.become(0, epoch=1, isr=(0, 1))
    stage.fetch(0, replica=1, epoch=1)
    stage.fetch(0, replica=2, epoch=1)
    assert stage.proposed[-1].isr == (0, 1, 2)
    answered = stage.produce("a")
    stage.fetch(1, replica=1, epoch=1)
    assert not answered
    stage.fetch(1, replica=2, epoch=1)
    assert answered
    stage.confirm(stage.proposed[-1])
    assert stage.partition.isr == (0, 1, 2)


def test_leadership_lost_is_told_at_once(stage: ReplicaStage) -> None:
    stage.become(0, epoch=1)
    answered = stage.produce("a")
    stage.become(1, epoch=2)
    assert error_of(answered) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_later_leadership_does_not_acknowledge_what_an_earlier_one_wrote(stage: ReplicaStage) -> None:
    """A record that waited in epoch 1 may be truncated in epoch 2; the same offset is another record in epoch 3."""
    stage.become(0, epoch=1)
    written = stage.append("lost")
    stage.become(1, epoch=2)
    stage.partition.truncate_to(0, leader_epoch=2)
    stage.become(0, epoch=3, isr=(0,), replicas=(0,))
    stage.produce("other")
    assert stage.partition.high_watermark == 1
    assert stage.partition.acknowledgement(1, written.awaited_in) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_re_elected_leader_goes_on_waiting(stage: ReplicaStage) -> None:
    stage.become(0, epoch=1)
    answered = stage.produce("a")
    stage.become(0, epoch=2)
    assert not answered
    for follower in (1, 2):
        stage.fetch(1, replica=follower, epoch=2)
    assert isinstance(answered[0], AppendResult)


def test_a_leader_that_was_not_told_of_another_one_in_between_believes_no_follower(stage: ReplicaStage) -> None:
    """Broker 1 led in epoch 2 and died. Broker 2 cut off the record that it had copied, and has to copy it again."""
    stage.become(0, epoch=1)
    answered = stage.produce("a")
    stage.fetch(1, replica=2, epoch=1)
    stage.become(0, epoch=3, isr=(0, 2))
    assert (stage.partition.high_watermark, answered) == (0, [])
    stage.fetch(1, replica=2, epoch=3)
    assert isinstance(answered[0], AppendResult)


def test_a_deleted_partition_and_a_failed_directory_answer_who_waits(stage: ReplicaStage) -> None:
    stage.become(0, epoch=1)
    deleted = stage.produce("a")
    stage.roles.stop([ORDERS], delete=True)
    assert error_of(deleted) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    stage.become(0, epoch=1)
    lost = stage.produce("a")
    stage.roles.take_offline([ORDERS])
    stage.passes(10)
    assert error_of(lost) is ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(KafkaError) as refused:
        stage.replicas.find(ORDERS)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_what_coordinators_write_is_told_once(stage: ReplicaStage) -> None:
    told: list[ErrorCode] = []
    stage.become(0, epoch=1)
    stage.replicas.append_own(ORDERS, batch("a"), timeout_ms=5_000, done=lambda code, _: told.append(code))
    assert told == []
    for follower in (1, 2):
        stage.fetch(1, replica=follower, epoch=1)
    stage.passes(6_000)
    assert told == [ErrorCode.NONE]
    stage.become(1, epoch=2)
    stage.replicas.append_own(ORDERS, batch("b"), timeout_ms=5_000, done=lambda code, _: told.append(code))
    assert told == [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_records_are_deleted_when_no_live_replica_has_them(stage: ReplicaStage) -> None:
    stage.become(0, epoch=1)
    stage.produce("a", "b", acks=1)
    for follower in (1, 2):
        stage.fetch(2, replica=follower, epoch=1)
    answered: list[dict[object, object]] = []
    stage.replicas.delete_records({ORDERS: 1}, timeout_ms=5_000, done=answered.append)
    assert not answered
    stage.live(0, 1)
    stage.partition.record_follower_fetch(1, 2, log_start_offset=1, leader_epoch=1, broker_epoch=-1)
    stage.replicas.wake(ORDERS)
    assert answered == [{ORDERS: 1}], "broker 2 is dead: nobody waits for it"
