from uuid import UUID

import pytest

from odradek.base.errors import ErrorCode
from odradek.broker.controller.core.context import ControllerContext
from odradek.broker.controller.core.reassignment_checks import dropped_by, reassigned_to, refusal
from odradek.model.topology import Broker, LeaderAndIsr, ReplicaAssignment, TopicAssignment, TopicPartition

TP = TopicPartition("orders", 0)


def cluster(assignment: ReplicaAssignment, isr: tuple[int, ...] = (0, 1)) -> ControllerContext:
    context = ControllerContext(broker_id=0, inter_broker_listener="PLAINTEXT")
    context.brokers = {broker: Broker(broker, (), epoch=broker + 10) for broker in range(5)}
    context.add_topic(TopicAssignment("orders", UUID(int=7), {0: assignment}))
    context.states[TP] = LeaderAndIsr(isr[0], 3, isr, 1, 5)
    return context


def test_the_target_comes_first_and_the_replicas_that_leave_last() -> None:
    assignment = reassigned_to(ReplicaAssignment((0, 1, 2)), (3, 2))
    assert assignment == ReplicaAssignment((3, 2, 0, 1), adding=(3,), removing=(0, 1))
    assert assignment.target == (3, 2)
    assert assignment.original == (2, 0, 1)


def test_another_order_of_the_same_replicas_adds_and_removes_nobody() -> None:
    assert reassigned_to(ReplicaAssignment((0, 1, 2)), (2, 0, 1)) == ReplicaAssignment((2, 0, 1))


def test_a_second_target_replaces_the_first() -> None:
    first = reassigned_to(ReplicaAssignment((0, 1)), (2, 3))
    second = reassigned_to(first, (3, 4))
    assert second == ReplicaAssignment((3, 4, 0, 1), adding=(3, 4), removing=(0, 1))
    assert dropped_by(first, second) == (2,)


def test_going_back_to_the_original_drops_what_was_added() -> None:
    moving = reassigned_to(ReplicaAssignment((0, 1)), (2, 3))
    back = reassigned_to(moving, moving.original)
    assert back == ReplicaAssignment((0, 1))
    assert dropped_by(moving, back) == (2, 3)


@pytest.mark.parametrize(
    ("target", "code", "words"),
    [
        ((), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Empty replica list"),
        ((1, 1), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Duplicate replica ids"),
        ((1, -1), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Invalid broker id"),
        ((1, 9), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "not alive. Replica list: 9, live broker list: 0, 1, 2, 3, 4"),
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment"),
    ],
)
def test_wishes_that_are_refused(target: tuple[int, ...] | None, code: ErrorCode, words: str) -> None:
    error = refusal(cluster(ReplicaAssignment((0, 1))), TP, target)
    assert error is not None
    assert error.code is code
    assert words in error.message


def test_a_dead_broker_that_holds_a_replica_already_may_stay_in_the_target() -> None:
    context = cluster(ReplicaAssignment((0, 1)))
    del context.brokers[1]
    assert refusal(context, TP, (1, 2)) is None


def test_a_broker_on_its_way_out_gets_no_new_replica() -> None:
    context = cluster(ReplicaAssignment((0, 1)))
    context.shutting_down.add(2)
    error = refusal(context, TP, (1, 2))
    assert error is not None
    assert error.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_topic_that_is_unknown_or_being_deleted_does_not_exist() -> None:
    context = cluster(ReplicaAssignment((0, 1)))
    unknown = refusal(context, TopicPartition("orders", 1), (1, 2))
    context.to_delete.add("orders")
    deleted = refusal(context, TP, (1, 2))
    assert unknown is not None
    assert deleted is not None
    assert unknown.code is deleted.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_only_replicas_in_sync_are_not_dropped() -> None:
    moving = ReplicaAssignment((2, 3, 0, 1), adding=(2, 3), removing=(0, 1))
    assert refusal(cluster(moving, isr=(0, 2)), TP, None) is None
    error = refusal(cluster(moving, isr=(2, 3)), TP, None)
    assert error is not None
    assert error.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert "unclean leader election" in error.message
