"""Notifications of brokers in ZooKeeper: ISRs that leaders wrote themselves, and failed log directories."""

from odradek.base.errors import ErrorCode
from odradek.broker.controller.core import reassignment
from odradek.broker.controller.core.context import ControllerContext, ReplicaState
from odradek.broker.controller.core.effects import (
    Decision,
    DropIsrNotifications,
    DropLogDirNotifications,
    ReadIsrNotifications,
    ReadLogDirNotifications,
    ReadPartitionStates,
    Report,
    Watch,
)
from odradek.broker.controller.core.events import IsrChangesNotified, LeaderAndIsrAnswered, LogDirsFailed
from odradek.broker.controller.core.replica_failure import replicas_gone
from odradek.broker.controller.core.replica_state_machine import move_replicas
from odradek.broker.controller.core.request_batch import RequestBatch
from odradek.broker.zk.znodes import IsrChanges, LogDirFailures
from odradek.model.topology import LeaderAndIsr, PartitionReplica, TopicPartition


def isr_changes_notified(context: ControllerContext, event: IsrChangesNotified) -> Decision[None]:
    """Handle changed ISRs. The notices are deleted last: if the controller dies before that, the next one reads
    them."""
    yield Watch(children=(IsrChanges.path,))
    names, changed = yield ReadIsrNotifications()
    if not names:
        return
    known = tuple(tp for tp in sorted(changed) if tp.partition in context.topics.get(tp.topic, ()))
    if known:
        states: dict[TopicPartition, LeaderAndIsr] = yield ReadPartitionStates(known)
        context.states.update(states)
        batch = RequestBatch(context)
        batch.add_update_metadata(context.brokers, known)
        yield from batch.flush()
        yield from reassignment.maybe_complete(context, known)
    yield DropIsrNotifications(tuple(names))


def log_dirs_failed(context: ControllerContext, event: LogDirsFailed) -> Decision[None]:
    """Send the broker its LeaderAndIsr again: the answer names the replicas that failed."""
    yield Watch(children=(LogDirFailures.path,))
    names, brokers = yield ReadLogDirNotifications()
    if not names:
        return
    yield Report(f"brokers {sorted(brokers)} lost a log directory")
    asked = [
        replica
        for replica in context.replicas_on(brokers)
        if context.is_online(replica, include_shutting_down=True)
        and not context.is_being_deleted(replica.partition.topic)
    ]
    yield from move_replicas(context, asked, ReplicaState.ONLINE)
    yield DropLogDirNotifications(tuple(names))


def leader_and_isr_answered(context: ControllerContext, event: LeaderAndIsrAnswered) -> Decision[None]:
    if event.broker_id not in context.brokers:
        return
    before = context.offline_replicas.get(event.broker_id, set())
    failed = {tp for tp, error in event.errors.items() if error == ErrorCode.KAFKA_STORAGE_ERROR}
    working = {tp for tp, error in event.errors.items() if error == ErrorCode.NONE}
    if not failed and before.isdisjoint(working):
        return
    context.offline_replicas[event.broker_id] = (before - working) | failed
    gone = sorted(failed - before)
    if gone:
        yield Report(f"broker {event.broker_id} can't serve {', '.join(map(str, gone))}: their directory failed")
        yield from replicas_gone(context, [PartitionReplica(tp, event.broker_id) for tp in gone])
