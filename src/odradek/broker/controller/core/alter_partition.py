"""AlterPartition: a leader proposes a new ISR, the controller checks and writes it.

Fenced by the broker's epoch, by the leader epoch and by the partition epoch, which is the state node's version. A
broker does not join the ISR unless it is alive, assigned, and the incarnation that the leader saw: one that has
restarted with an empty disk has to catch up again. Only the event thread makes this decision.
"""

from collections.abc import Mapping

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.controller.core.context import ControllerContext
from odradek.broker.controller.core.effects import Answer, Decision, ReadPartitionStates, UpdatePartitionStates
from odradek.broker.controller.core.events import IsrChangeAsked
from odradek.broker.controller.core.reassignment import maybe_complete
from odradek.broker.controller.core.request_batch import RequestBatch
from odradek.model.topology import UNKNOWN_BROKER_EPOCH, LeaderAndIsr, TopicPartition


def isr_change_asked(context: ControllerContext, event: IsrChangeAsked) -> Decision[None]:
    broker = context.brokers.get(event.broker_id)
    if broker is None or broker.epoch != event.broker_epoch:
        yield Answer(event.answer, KafkaError(ErrorCode.STALE_BROKER_EPOCH))
        return
    results: dict[TopicPartition, LeaderAndIsr | KafkaError] = {}
    approved: dict[TopicPartition, LeaderAndIsr] = {}
    for tp, wanted in event.wanted.items():
        current = context.states.get(tp)
        if current is None:
            results[tp] = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif error := _fenced(current, wanted):
            results[tp] = KafkaError(error)
        elif _is_so_already(current, wanted):
            results[tp] = current
        elif error := _refused(context, tp, current, event):
            results[tp] = KafkaError(error)
        else:
            approved[tp] = LeaderAndIsr(
                current.leader,
                current.leader_epoch,
                wanted.isr,
                context.term.epoch,
                current.zk_version,
                recovering=wanted.recovering,
            )
    written = yield from _write(context, approved)
    for tp in approved:
        results[tp] = written.get(tp) or KafkaError(ErrorCode.INVALID_UPDATE_VERSION)
    yield Answer(event.answer, results)
    yield from maybe_complete(context, written)


def _fenced(current: LeaderAndIsr, wanted: LeaderAndIsr) -> ErrorCode | None:
    """Return whether the sender knows a newer controller epoch."""
    if wanted.zk_version > current.zk_version or wanted.leader_epoch > current.leader_epoch:
        return ErrorCode.NOT_CONTROLLER
    if wanted.leader_epoch < current.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return None


def _is_so_already(current: LeaderAndIsr, wanted: LeaderAndIsr) -> bool:
    """Return whether the change was made already: a repeated request has the partition epoch from before its first
    success."""
    return (current.leader, current.isr, current.recovering) == (wanted.leader, wanted.isr, wanted.recovering)


def _refused(
    context: ControllerContext, tp: TopicPartition, current: LeaderAndIsr, event: IsrChangeAsked
) -> ErrorCode | None:
    wanted = event.wanted[tp]
    if event.broker_id != current.leader:
        return ErrorCode.INVALID_REQUEST
    if wanted.zk_version < current.zk_version:
        return ErrorCode.INVALID_UPDATE_VERSION
    if wanted.recovering and (len(wanted.isr) > 1 or not current.recovering):
        return ErrorCode.INVALID_REQUEST
    assigned = context.assignment(tp).replicas
    if current.leader not in wanted.isr or len(set(wanted.isr)) < len(wanted.isr) or not {*wanted.isr} <= {*assigned}:
        return ErrorCode.INVALID_REQUEST
    seen = event.isr_epochs.get(tp, {})
    others = (replica for replica in wanted.isr if replica != current.leader)
    if all(_is_eligible(context, replica, seen.get(replica, UNKNOWN_BROKER_EPOCH)) for replica in others):
        return None
    return ErrorCode.INELIGIBLE_REPLICA


def _is_eligible(context: ControllerContext, broker_id: int, epoch_seen: int) -> bool:
    """Return whether the replica may be in the ISR. The leader always may: before it leaves, others have to join."""
    if broker_id not in context.live_brokers():
        return False
    return epoch_seen in (UNKNOWN_BROKER_EPOCH, context.brokers[broker_id].epoch)


def _write(
    context: ControllerContext, approved: Mapping[TopicPartition, LeaderAndIsr]
) -> Decision[Mapping[TopicPartition, LeaderAndIsr]]:
    """Write the states. → the written ones. A state that lost a race is read again, for the next request."""
    if not approved:
        return {}
    written: Mapping[TopicPartition, LeaderAndIsr] = yield UpdatePartitionStates(approved)
    context.states.update(written)
    lost = tuple(tp for tp in approved if tp not in written)
    if lost:
        context.states.update((yield ReadPartitionStates(lost)))
    if written:
        batch = RequestBatch(context)
        batch.add_update_metadata(context.brokers, written)
        yield from batch.flush()
    return written
