"""Failover: a new controller reads the cluster, announces itself to all brokers, and continues the operations of the
previous one.

Watches are set before reads, so that no change is missed. Reads of many nodes are pipelined.
"""

from dataclasses import replace

from odradek.broker.controller.core import leader_elections, reassignment, topic_deletion
from odradek.broker.controller.core.broker_changes import watch_brokers
from odradek.broker.controller.core.context import ControllerContext, ReplicaState
from odradek.broker.controller.core.effects import (
    Decision,
    DropIsrNotifications,
    DropLogDirNotifications,
    OpenChannel,
    ReadBrokers,
    ReadIsrNotifications,
    ReadLogDirNotifications,
    ReadPartitionStates,
    ReadTopicNames,
    ReadTopicsToDelete,
    Report,
    Schedule,
    UpdatePartitionStates,
    Watch,
)
from odradek.broker.controller.core.events import (
    ControllerElected,
    PreferredElectionNodeWritten,
    RebalanceDue,
    TopicDeletionAsked,
)
from odradek.broker.controller.core.partition_state_machine import elect_missing_leaders, set_out_partitions
from odradek.broker.controller.core.replica_state_machine import move_replicas, set_out_replicas
from odradek.broker.controller.core.request_batch import RequestBatch
from odradek.broker.controller.core.topic_changes import load_topics
from odradek.broker.zk.znodes import (
    BrokerIds,
    DeletedTopic,
    IsrChanges,
    LogDirFailures,
    PreferredElection,
    Reassignments,
    Topics,
)
from odradek.model.topology import LeaderAndIsr, TopicPartition

FIRST_REBALANCE_MS = 5000


def take_over(context: ControllerContext, event: ControllerElected) -> Decision[None]:
    yield Watch(
        children=(BrokerIds.path, Topics.path, DeletedTopic.parent, LogDirFailures.path, IsrChanges.path),
        nodes=(PreferredElection.path, Reassignments.path),
    )
    yield from _drop_notices()
    yield from _read_cluster(context)
    yield from _read_deletions(context)
    yield from _fence_restarted_brokers(context)
    for broker in context.brokers.values():
        yield OpenChannel(broker)
    yield from _tell_everything(context)
    yield from _start_machines(context)
    yield from reassignment.resume(context)
    yield from topic_deletion.resume_deletions(context)
    yield from leader_elections.node_written(context, PreferredElectionNodeWritten())
    if context.auto_leader_rebalance:
        yield Schedule(RebalanceDue(), FIRST_REBALANCE_MS)


def _drop_notices() -> Decision[None]:
    """Delete the notices: their subjects are read now anyway, the states of all partitions, and from the brokers their
    failed replicas."""
    names, _ = yield ReadLogDirNotifications()
    if names:
        yield DropLogDirNotifications(tuple(names))
    names, _ = yield ReadIsrNotifications()
    if names:
        yield DropIsrNotifications(tuple(names))


def _read_cluster(context: ControllerContext) -> Decision[None]:
    context.brokers = yield ReadBrokers()
    yield watch_brokers(sorted(context.brokers))
    names: set[str] = yield ReadTopicNames()
    partitions = yield from load_topics(context, names)
    context.reassigning = {tp for tp in partitions if context.assignment(tp).is_reassigning}
    context.states = (yield ReadPartitionStates(tuple(partitions))) if partitions else {}
    yield Report(
        f"controller of epoch {context.term.epoch} takes over {len(context.brokers)} brokers, "
        f"{len(names)} topics, {len(partitions)} partitions",
        "info",
    )


def _read_deletions(context: ControllerContext) -> Decision[None]:
    """Read the topics to delete, and drop their reassignments; one with a dead replica waits. Other marks are read
    later."""
    marked: set[str] = yield ReadTopicsToDelete()
    context.to_delete = marked & context.topics.keys() if context.delete_topic_enabled else set()
    if marked - context.to_delete:
        yield Schedule(TopicDeletionAsked(), 0)
    for topic in context.to_delete:
        partitions = context.partitions_of(topic)
        context.reassigning.difference_update(partitions)
        if not all(context.is_online(replica) for replica in context.replicas_of(partitions)):
            context.ineligible_for_deletion.add(topic)


def _fence_restarted_brokers(context: ControllerContext) -> Decision[None]:
    """Remove from the ISR every broker that has registered since the state was written: its restart was never handled.

    It may have lost records. If it continued to lead in the same epoch, the others would truncate their logs to its
    own. So others lead and it follows, as after a noticed failure; unless no other in the ISR has lived on. Where one
    alone has, the restarted brokers stay in the ISR and don't lead: that one may be dead by now, its session not yet
    over, and most of the restarted ones have lost a session and nothing else.
    """
    changed: dict[TopicPartition, LeaderAndIsr] = {}
    for tp, state in context.states.items():
        alive = [broker for broker in context.online_replicas(tp) if broker in state.isr]
        stayed = [broker for broker in alive if context.brokers[broker].epoch <= state.written_zxid]
        restarted = set(alive) - set(stayed)
        if not stayed or not restarted or context.is_being_deleted(tp.topic):
            continue
        leaving = restarted if len(stayed) > 1 else set[int]()
        leader = stayed[0] if state.leader in restarted else state.leader
        if leaving or leader != state.leader:
            changed[tp] = _without(state, leaving, leader, context.term.epoch)
    if not changed:
        return
    yield Report(
        f"brokers restarted before their failure was seen, leaders elected for {', '.join(map(str, changed))}", "info"
    )
    context.states |= yield UpdatePartitionStates(changed)
    if lost := tuple(tp for tp, state in changed.items() if context.states[tp].leader_epoch != state.leader_epoch):
        context.states |= yield ReadPartitionStates(lost)


def _without(state: LeaderAndIsr, leaving: set[int], leader: int, controller_epoch: int) -> LeaderAndIsr:
    return replace(
        state,
        leader=leader,
        leader_epoch=state.leader_epoch + 1,
        isr=tuple(broker for broker in state.isr if broker not in leaving),
        controller_epoch=controller_epoch,
    )


def _tell_everything(context: ControllerContext) -> Decision[None]:
    """Send all metadata before any LeaderAndIsr: brokers must know the addresses of the others."""
    batch = RequestBatch(context)
    batch.add_full_metadata(context.brokers, context.states)
    yield from batch.flush()


def _start_machines(context: ControllerContext) -> Decision[None]:
    """Start the state machines: the first LeaderAndIsr of a term names every replica of a broker."""
    online, offline = set_out_replicas(context)
    set_out_partitions(context)
    yield from move_replicas(context, online, ReplicaState.ONLINE)
    yield from elect_missing_leaders(context)
    yield from move_replicas(context, offline, ReplicaState.OFFLINE)
