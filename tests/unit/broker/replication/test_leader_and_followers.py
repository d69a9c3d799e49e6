"""Fetches at a leader: replicas in sync, fenced replicas, and consumers that should read elsewhere."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from replica_stage import MAX_LAG_MS, ORDERS, ORDERS_ID, ReplicaStage

from odradek.base.errors import ErrorCode
from odradek.broker.replication.core.isr import IsrChange
from odradek.broker.replication.leader.isr_changes import AlterPartitionUpdater, Answer, IsrChanges, ZooKeeperIsrUpdater
from odradek.model.topology import LeaderAndIsr, TopicPartition
from odradek.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionResult,
    TopicResult,
)
from odradek.protocol.schema import Request

WAIT_S = 60


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[ReplicaStage]:
    stage = ReplicaStage(tmp_path)
    yield stage
    stage.close()


def test_who_lags_for_too_long_is_dropped_and_who_catches_up_joins(stage: ReplicaStage) -> None:
    stage.become(0, epoch=1)
    stage.produce("a", acks=1)
    stage.fetch(1, replica=1, epoch=1)
    stage.fetch(0, replica=2, epoch=1)
    stage.passes(MAX_LAG_MS + 1)
    stage.roles.check_replicas()
    (change,) = stage.proposed
    assert change.isr == (0, 1), "broker 1 is silent, but it has everything"
    stage.roles.check_replicas()
    assert stage.proposed == [change], "one change at a time"
    stage.confirm(change)
    stage.fetch(0, replica=2, epoch=1)
    assert stage.proposed == [change], "it doesn't have what is committed"
    stage.live(0, 1)
    stage.fetch(1, replica=2, epoch=1)
    assert stage.proposed == [change], "its broker is dead, as far as the controller knows"
    stage.live(0, 1, 2)
    stage.fetch(1, replica=2, epoch=1, replica_epoch=77)
    assert stage.proposed[-1].isr == (0, 1, 2)
    assert stage.proposed[-1].broker_epochs == (-1, -1, 77)
    assert stage.proposed[-1].partition_epoch == change.partition_epoch + 1


def test_nobody_joins_before_it_has_what_the_leader_had_at_the_start_of_its_epoch(stage: ReplicaStage) -> None:
    stage.become(0, epoch=1, isr=(0, 1))
    stage.produce("a", acks=1)
    stage.become(0, epoch=2, isr=(0, 1))
    assert stage.partition.high_watermark == 0
    stage.fetch(0, replica=2, epoch=2)
    assert not stage.proposed


def test_steady_writes_do_not_drop_a_follower_that_is_always_a_little_behind(stage: ReplicaStage) -> None:
    stage.become(0, epoch=1, isr=(0, 1))
    for end in range(10):
        stage.produce("x", acks=1)
        stage.fetch(end, replica=1, epoch=1)
        stage.passes(MAX_LAG_MS // 2)
        stage.roles.check_replicas()
    assert not stage.proposed


@pytest.mark.parametrize("refused", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.FENCED_LEADER_EPOCH])
def test_a_refused_change_is_taken_back_or_waits_for_the_controller(stage: ReplicaStage, refused: ErrorCode) -> None:
    stage.become(0, epoch=1, isr=(0, 1))
    stage.fetch(0, replica=2, epoch=1)
    stage.replicas.isr_answered(stage.proposed[0], refused)
    stage.fetch(0, replica=2, epoch=1)
    assert len(stage.proposed) == (2 if refused is ErrorCode.INELIGIBLE_REPLICA else 1)
    late = stage.proposed[-1]
    stage.become(0, epoch=2, isr=(0, 1))
    stage.confirm(late)
    assert stage.partition.isr == (0, 1), "an answer from before the epoch is not heard"


def test_fetches_of_the_wrong_epoch_and_of_strangers_count_for_nothing(stage: ReplicaStage) -> None:
    stage.become(0, epoch=3, isr=(0, 1), replicas=(0, 1))
    stage.produce("a", acks=1)
    errors = [stage.fetch(1, replica=1, epoch=epoch)[0].error for epoch in (2, 4)] + [
        stage.fetch(1, replica=2, epoch=3)[0].error,
        stage.fetch(5, replica=1, epoch=3)[0].error,
    ]
    assert errors == [
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_OUT_OF_RANGE,
    ]
    assert stage.partition.high_watermark == 0
    stage.become(1, epoch=4, isr=(0, 1), replicas=(0, 1))
    assert stage.fetch(0, replica=1, epoch=4)[0].error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_consumers_read_from_a_follower_up_to_its_watermark(stage: ReplicaStage) -> None:
    stage.become(0, epoch=1)
    stage.produce("a", acks=1)
    stage.become(1, epoch=2)
    assert stage.fetch(0)[0].error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    (outcome,) = stage.fetch(0, only_leader=False)
    assert outcome.error is ErrorCode.NONE
    assert outcome.size == 0, "it isn't known to be committed"


def test_a_consumer_is_sent_to_the_replica_in_its_rack(stage: ReplicaStage) -> None:
    stage.become(0, epoch=1)
    stage.produce("a", acks=1)
    for follower in (1, 2):
        stage.fetch(1, replica=follower, epoch=1)
    near = {"only_leader": False}
    assert stage.fetch(0, rack="rack-2", **near)[0].read_from == 2
    assert stage.fetch(0, rack="rack-0", **near)[0].read_from == -1
    assert stage.fetch(0, rack="rack-9", **near)[0].read_from == -1
    assert stage.fetch(0, **near)[0].size > 0


# ---- changes on their way


def change_of(tp: TopicPartition, partition_epoch: int = 3) -> IsrChange:
    return IsrChange(tp, ORDERS_ID, 0, 5, partition_epoch, 1, (0, 1), (-1, 44))


def test_changes_are_asked_for_until_they_are_answered() -> None:
    answered: list[tuple[IsrChange, Answer]] = []
    requests: list[AlterPartitionRequest] = []
    all_answered = threading.Event()

    def send(request: Request) -> AlterPartitionResponse:
        assert isinstance(request, AlterPartitionRequest)
        requests.append(request)
        if len(requests) == 1:
            raise OSError("the controller is away")
        if len(requests) == 2:
            return AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)
        result = PartitionResult(partition_index=0, leader_id=0, leader_epoch=5, isr=[0, 1], partition_epoch=4)
        return AlterPartitionResponse(topics=[TopicResult(topic_id=ORDERS_ID, partitions=[result])])

    def on_answer(change: IsrChange, answer: Answer) -> None:
        answered.append((change, answer))
        all_answered.set()

    changes = IsrChanges(AlterPartitionUpdater(0, lambda: 9, send))
    changes.start(on_answer)
    change = change_of(ORDERS)
    changes.submit(change)
    assert all_answered.wait(WAIT_S)
    changes.stop()
    assert answered == [(change, LeaderAndIsr(0, 5, (0, 1), 1, 4))]
    (data,) = requests[-1].topics[0].partitions
    assert requests[-1].broker_epoch == 9
    assert [(member.broker_id, member.broker_epoch) for member in data.new_isr_with_epochs] == [(0, -1), (1, 44)]


class Answers:
    def __init__(self, *answers: Answer | None) -> None:
        self.answers = list(answers)

    def make(self, changes: Sequence[IsrChange]) -> dict[TopicPartition, Answer]:
        answer = self.answers.pop(0)
        return {} if answer is None else {change.partition: answer for change in changes}


def test_what_is_not_answered_stays_and_a_newer_change_takes_the_place_of_an_older() -> None:
    answered: list[tuple[IsrChange, Answer]] = []
    way = Answers(None, ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.REQUEST_TIMED_OUT)
    changes = IsrChanges(way)

    def make(change: IsrChange) -> bool:
        return changes.make([change], lambda asked, answer: answered.append((asked, answer)))

    older, newer = change_of(ORDERS, 3), change_of(ORDERS, 4)
    changes.submit(older)
    assert not make(older)
    assert answered == []
    changes.submit(newer)
    assert make(older), "asking again would not help"
    assert not make(newer)
    assert answered == [(older, ErrorCode.INVALID_UPDATE_VERSION), (newer, ErrorCode.REQUEST_TIMED_OUT)]


def test_the_way_by_zookeeper_writes_and_leaves_a_notice() -> None:
    lost = TopicPartition("orders", 1)
    notices: list[set[TopicPartition]] = []
    way = ZooKeeperIsrUpdater(
        lambda tp, state: None if tp == lost else state.zk_version + 1, lambda tps: notices.append({*tps})
    )
    answers = way.make([change_of(ORDERS), change_of(lost)])
    assert answers == {ORDERS: LeaderAndIsr(0, 5, (0, 1), 1, 4), lost: ErrorCode.INVALID_UPDATE_VERSION}
    assert notices == [{ORDERS}]
