"""Steps of a reassignment.

The target is written to ZooKeeper before the steps are executed, so that a new controller can continue.

With O the replicas that it had and T those that are wanted, the topic's node goes

    O  →  replicas T∪O, adding T−O, removing O−T  →  T

1. Begin. Replicas that only an earlier reassignment, now replaced or cancelled, was adding are stopped and deleted;
   then the topic's node is written. In this order: if the controller dies in between, the next one resumes the earlier
   reassignment.
2. Wait, until T is all alive and in the ISR. The leader epoch is raised so that all of T∪O learn of one another, the
   new ones start to follow. Each change of the ISR asks again.
3. Complete. The leader moves into T if it isn't there; replicas outside of T leave the ISR and delete their logs; the
   topic's node is written last, since it is the only place that knows of them. Where no replica of T can lead, the
   partition stays as it is until one of T comes back.

A topic that is deleted takes its reassignments with it. Many partitions take each step together, in one batch.
Decisions of the event thread, used by `reassignment` only.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.controller.core.context import ControllerContext, PartitionState, ReplicaState, by_topic
from odradek.broker.controller.core.effects import (
    Decision,
    ReadPartitionStates,
    ReadTopics,
    Report,
    UpdatePartitionStates,
    WriteAssignment,
)
from odradek.broker.controller.core.election import ElectionStrategy
from odradek.broker.controller.core.partition_state_machine import ROUNDS_MAX, move_partitions
from odradek.broker.controller.core.reassignment_checks import dropped_by
from odradek.broker.controller.core.reassignment_node import remove_from_node
from odradek.broker.controller.core.replica_state_machine import move_replicas
from odradek.broker.controller.core.request_batch import RequestBatch
from odradek.model.topology import LeaderAndIsr, PartitionReplica, ReplicaAssignment, TopicAssignment, TopicPartition

Wanted = Mapping[TopicPartition, ReplicaAssignment]


def begin(context: ControllerContext, wanted: Wanted) -> Decision[dict[TopicPartition, KafkaError]]:
    """Begin the moves. → the failed ones."""
    changed = {tp: assignment for tp, assignment in wanted.items() if assignment != context.assignment(tp)}
    yield from _remove_replicas(
        context,
        [
            PartitionReplica(tp, broker)
            for tp, assignment in changed.items()
            for broker in dropped_by(context.assignment(tp), assignment)
        ],
    )
    gone = yield from _write_assignments(context, changed)
    begun = [tp for tp in wanted if tp not in gone]
    for tp in begun:
        context.set_assignment(tp, wanted[tp])
    context.reassigning.update(begun)
    yield from advance(context, begun)
    return {tp: KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.") for tp in gone}


def advance(context: ControllerContext, tps: Sequence[TopicPartition]) -> Decision[None]:
    if tps:
        ready, waiting = yield from _split_by_readiness(context, tps)
        yield from _wait(context, waiting)
        yield from _complete(context, ready)


def complete_ready(context: ControllerContext, tps: Sequence[TopicPartition]) -> Decision[None]:
    if tps:
        ready, _ = yield from _split_by_readiness(context, tps)
        yield from _complete(context, ready)


def _split_by_readiness(
    context: ControllerContext, tps: Sequence[TopicPartition]
) -> Decision[tuple[list[TopicPartition], list[TopicPartition]]]:
    """Split by the present state in ZooKeeper: a leader of an older version writes there by itself.

    Such a leader may also have let in one of T that had died by then. It is put out, since what comes back in its name
    need not have what it had.
    """
    states: Mapping[TopicPartition, LeaderAndIsr] = yield ReadPartitionStates(tuple(tps))
    context.states.update(states)
    ready: list[TopicPartition] = []
    waiting: list[TopicPartition] = []
    dead: list[PartitionReplica] = []
    for tp in tps:
        assignment = context.assignment(tp)
        isr = states[tp].isr if tp in states else ()
        target = [PartitionReplica(tp, broker) for broker in assignment.target]
        gone = [replica for replica in target if not context.is_online(replica, include_shutting_down=True)]
        in_sync = not gone and set(isr).issuperset(assignment.target)
        (ready if in_sync or not assignment.is_reassigning else waiting).append(tp)
        if len(isr) > 1:
            dead += [replica for replica in gone if replica.broker in isr]
    if dead:
        yield from move_replicas(context, dead, ReplicaState.OFFLINE)
    return ready, waiting


# --- 2. wait -----------------------------------------------------------------------------------------------------


def _wait(context: ControllerContext, tps: Sequence[TopicPartition]) -> Decision[None]:
    yield from _raise_leader_epochs(context, tps)
    batch = RequestBatch(context)
    not_created = []
    for tp in tps:
        assignment = context.assignment(tp)
        batch.add_leader_and_isr(assignment.original, tp)
        for replica in (PartitionReplica(tp, broker) for broker in assignment.adding):
            if context.replica_state(replica) is ReplicaState.NON_EXISTENT:
                not_created.append(replica)
            else:
                batch.add_leader_and_isr((replica.broker,), tp, is_new=True)
    yield from batch.flush()
    if not_created:
        yield from move_replicas(context, not_created, ReplicaState.NEW)


# --- 3. complete -------------------------------------------------------------------------------------------------


def _complete(context: ControllerContext, tps: Sequence[TopicPartition]) -> Decision[None]:
    if not tps:
        return
    moving = {tp: context.assignment(tp) for tp in tps}
    yield from _bring_online(context, moving)
    for tp, assignment in moving.items():
        context.set_assignment(tp, ReplicaAssignment(assignment.target))
    for tp in (yield from _lead_from_target(context, tps)):
        context.set_assignment(tp, moving.pop(tp))
        yield Report(f"reassignment of {tp} waits: none of its new replicas can lead")

    yield from _remove_replicas(
        context, [PartitionReplica(tp, broker) for tp, assignment in moving.items() for broker in assignment.removing]
    )
    final = {tp: ReplicaAssignment(assignment.target) for tp, assignment in moving.items()}
    yield from _write_assignments(context, {tp: final[tp] for tp in final if moving[tp].is_reassigning})
    for tp, assignment in final.items():
        context.set_assignment(tp, assignment)
    yield from remove_from_node(context, {tp: assignment.replicas for tp, assignment in final.items()})
    context.reassigning.difference_update(final)


def _bring_online(context: ControllerContext, moving: Wanted) -> Decision[None]:
    arrived = [
        replica
        for tp, assignment in moving.items()
        for replica in (PartitionReplica(tp, broker) for broker in assignment.adding)
        if context.is_online(replica) and context.replica_state(replica) is not ReplicaState.ONLINE
    ]
    if arrived:
        yield from move_replicas(context, arrived, ReplicaState.ONLINE)


def _lead_from_target(context: ControllerContext, tps: Sequence[TopicPartition]) -> Decision[list[TopicPartition]]:
    """Send T to all replicas in it, and elect a leader among them. → the partitions where none of them can lead."""
    staying, electing = [], []
    for tp in tps:
        state = context.states.get(tp)
        leads = state is not None and state.leader in context.assignment(tp).replicas
        if leads and state is not None and context.is_online(PartitionReplica(tp, state.leader)):
            staying.append(tp)
        else:
            electing.append(tp)
    yield from _raise_leader_epochs(context, staying)
    batch = RequestBatch(context)
    for tp in staying:
        batch.add_leader_and_isr(context.assignment(tp).replicas, tp)
    yield from batch.flush()
    if not electing:
        return []
    errors = yield from move_partitions(context, electing, PartitionState.ONLINE, ElectionStrategy.REASSIGN)
    return list(errors)


# --- common parts of the steps -----------------------------------------------------------------------------------


def _remove_replicas(context: ControllerContext, replicas: Iterable[PartitionReplica]) -> Decision[None]:
    """Remove the replicas from the ISR and delete their logs. No answer is awaited: a leftover replica does no harm."""
    existing = [r for r in replicas if context.replica_state(r) is not ReplicaState.NON_EXISTENT]
    if not existing:
        return
    for state in (
        ReplicaState.OFFLINE,
        ReplicaState.DELETION_STARTED,
        ReplicaState.DELETION_SUCCESSFUL,
        ReplicaState.NON_EXISTENT,
    ):
        yield from move_replicas(context, existing, state)


def _write_assignments(context: ControllerContext, wanted: Wanted) -> Decision[set[TopicPartition]]:
    """→ partitions whose topic was deleted. Partitions that were added to the node in the meantime stay in it."""
    if not wanted:
        return set()
    gone: set[TopicPartition] = set()
    topics = by_topic(wanted)
    nodes: Mapping[str, TopicAssignment] = yield ReadTopics(frozenset(topics))
    for topic, tps in topics.items():
        node = nodes.get(topic)
        changed = {tp.partition: wanted[tp] for tp in tps}
        if node is None or not (
            yield WriteAssignment(replace(node, partitions=dict(sorted({**node.partitions, **changed}.items()))))
        ):
            yield Report(f"{topic} can't be reassigned: its node is gone or can't be read")
            gone.update(tps)
    return gone


def _raise_leader_epochs(context: ControllerContext, tps: Sequence[TopicPartition]) -> Decision[None]:
    """Raise the epochs; leader and ISR stay. If the node has changed, the write is repeated with its new content; a
    partition that never had a leader has no epoch.
    """
    known = {tp: context.states[tp] for tp in tps if tp in context.states}
    for _ in range(ROUNDS_MAX):
        if not known:
            return
        raised = {
            tp: replace(state, leader_epoch=state.leader_epoch + 1, controller_epoch=context.term.epoch)
            for tp, state in known.items()
        }
        written: Mapping[TopicPartition, LeaderAndIsr] = yield UpdatePartitionStates(raised)
        context.states.update(written)
        lost = tuple(tp for tp in raised if tp not in written)
        known = (yield ReadPartitionStates(lost)) if lost else {}
    yield Report(f"the leader epochs of {', '.join(map(str, known))} can't be raised: others change them without end")
