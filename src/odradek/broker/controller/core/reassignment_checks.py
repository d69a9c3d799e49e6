"""Arithmetic of a reassignment, and the errors of invalid ones, with Apache Kafka's texts. Pure."""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.controller.core.context import ControllerContext
from odradek.model.topology import ReplicaAssignment, TopicPartition


def reassigned_to(assignment: ReplicaAssignment, target: tuple[int, ...]) -> ReplicaAssignment:
    """The assignment on its way to `target`, which comes first and in its order; replaces an earlier reassignment."""
    original = assignment.original
    replicas = tuple(dict.fromkeys(target + original))
    return ReplicaAssignment(
        replicas,
        adding=tuple(broker for broker in replicas if broker not in original),
        removing=tuple(broker for broker in replicas if broker not in target),
    )


def dropped_by(current: ReplicaAssignment, wanted: ReplicaAssignment) -> tuple[int, ...]:
    """Return the replicas that an earlier reassignment was adding and that the new one does not need."""
    return tuple(broker for broker in current.replicas if broker not in wanted.replicas)


def refusal(context: ControllerContext, tp: TopicPartition, target: tuple[int, ...] | None) -> KafkaError | None:
    """Return the reason why a request is refused; None when it is accepted. `target` None cancels."""
    current = context.assignment(tp)
    if target is not None:
        wrong = malformed(target) or _not_alive(context, reassigned_to(current, target))
        if wrong is not None:
            return wrong
    elif not current.is_reassigning:
        return KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    return unknown_partition(context, tp) or loses_records(
        context, tp, reassigned_to(current, current.original if target is None else target)
    )


def malformed(target: tuple[int, ...]) -> KafkaError | None:
    if not target:
        message = "Empty replica list specified in partition reassignment."
    elif len(set(target)) != len(target):
        message = f"Duplicate replica ids in partition reassignment replica list: {_listed(target)}"
    elif min(target) < 0:
        message = f"Invalid broker id in replica list: {_listed(target)}"
    else:
        return None
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def unknown_partition(context: ControllerContext, tp: TopicPartition) -> KafkaError | None:
    """Return whether the partition is unknown; a topic that is being deleted can't be moved."""
    if context.assignment(tp).replicas and not context.is_being_deleted(tp.topic):
        return None
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")


def _not_alive(context: ControllerContext, wanted: ReplicaAssignment) -> KafkaError | None:
    live = context.live_brokers()
    if live.issuperset(wanted.adding):
        return None
    return KafkaError(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Replica assignment has brokers that are not alive. "
        f"Replica list: {_listed(wanted.adding)}, live broker list: {_listed(sorted(live))}",
    )


def loses_records(context: ControllerContext, tp: TopicPartition, wanted: ReplicaAssignment) -> KafkaError | None:
    """Return the refusal of a change that would drop all replicas in sync, as by Apache Kafka in KRaft mode."""
    dropped = dropped_by(context.assignment(tp), wanted)
    state = context.states.get(tp)
    if not dropped or state is None or not set(state.isr) <= set(dropped):
        return None
    return KafkaError(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        f"Unable to revert partition assignment for {tp} because it would require an unclean leader election.",
    )


def _listed(brokers: tuple[int, ...] | list[int]) -> str:
    return ", ".join(map(str, brokers))
