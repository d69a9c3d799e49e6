"""The replica state machine: legal moves, and the requests that each move sends to the replica's broker.

A replica that goes offline is removed from the ISR here. The write is conditional on the version that the decision
used, and the decision is repeated if a leader has changed the node in the meantime.
"""

from collections.abc import Callable, Iterable, Mapping

from odradek.broker.controller.core.context import ControllerContext, ReplicaState
from odradek.broker.controller.core.effects import Decision, Moved, ReadPartitionStates, Report, UpdatePartitionStates
from odradek.broker.controller.core.partition_state_machine import ROUNDS_MAX, change_of
from odradek.broker.controller.core.request_batch import RequestBatch
from odradek.model.topology import NO_LEADER, LeaderAndIsr, PartitionReplica, ReplicaAssignment, TopicPartition

LEGAL_FROM: Mapping[ReplicaState, frozenset[ReplicaState]] = {
    ReplicaState.NEW: frozenset({ReplicaState.NON_EXISTENT}),
    ReplicaState.ONLINE: frozenset(
        {ReplicaState.NEW, ReplicaState.ONLINE, ReplicaState.OFFLINE, ReplicaState.DELETION_INELIGIBLE}
    ),
    ReplicaState.OFFLINE: frozenset(
        {ReplicaState.NEW, ReplicaState.ONLINE, ReplicaState.OFFLINE, ReplicaState.DELETION_INELIGIBLE}
    ),
    ReplicaState.DELETION_STARTED: frozenset({ReplicaState.OFFLINE}),
    ReplicaState.DELETION_SUCCESSFUL: frozenset({ReplicaState.DELETION_STARTED}),
    ReplicaState.DELETION_INELIGIBLE: frozenset({ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED}),
    ReplicaState.NON_EXISTENT: frozenset({ReplicaState.DELETION_SUCCESSFUL}),
}

_NAMES = {state: state.name for state in ReplicaState}


def move_replicas(
    context: ControllerContext, replicas: Iterable[PartitionReplica], target: ReplicaState
) -> Decision[None]:
    legal = yield from _only_legal(context, replicas, target)
    batch = RequestBatch(context)
    yield from _MOVES[target](context, legal, batch)
    yield from batch.flush()


def set_out_replicas(context: ControllerContext) -> tuple[list[PartitionReplica], list[PartitionReplica]]:
    """Set the state of each replica at the beginning of a term. Return online and offline replicas.

    One that isn't can't be deleted now: its broker may have died in the middle of that, under the last controller.
    """
    online, offline = [], []
    for replica in context.replicas_of(context.all_partitions()):
        if context.is_online(replica):
            context.replica_states[replica] = ReplicaState.ONLINE
            online.append(replica)
        else:
            context.replica_states[replica] = ReplicaState.DELETION_INELIGIBLE
            offline.append(replica)
    return online, offline


def _only_legal(
    context: ControllerContext, replicas: Iterable[PartitionReplica], target: ReplicaState
) -> Decision[list[PartitionReplica]]:
    legal = []
    legal_from = LEGAL_FROM[target]
    for replica in replicas:
        if context.replica_state(replica) in legal_from:
            legal.append(replica)
        else:
            state = context.replica_state(replica).name
            yield Report(f"replica {replica} can't go from {state} to {target.name}", "error")
    return legal


def _to_new(context: ControllerContext, replicas: list[PartitionReplica], batch: RequestBatch) -> Decision[None]:
    for replica in replicas:
        state = context.states.get(replica.partition)
        if state is not None and state.leader == replica.broker:
            yield Report(f"replica {replica} can't go to NEW: it leads its partition", "error")
            continue
        batch.add_leader_and_isr((replica.broker,), replica.partition, is_new=True)
        yield _move(context, replica, ReplicaState.NEW)


def _to_online(context: ControllerContext, replicas: list[PartitionReplica], batch: RequestBatch) -> Decision[None]:
    for replica in replicas:
        if context.replica_state(replica) is ReplicaState.NEW:
            yield from _see_it_assigned(context, replica)
        else:
            batch.add_leader_and_isr((replica.broker,), replica.partition)
        yield _move(context, replica, ReplicaState.ONLINE)


def _see_it_assigned(context: ControllerContext, replica: PartitionReplica) -> Decision[None]:
    assignment = context.assignment(replica.partition)
    if replica.broker not in assignment.replicas:
        yield Report(f"replica {replica} is not part of the assignment {assignment.replicas}; it is added", "error")
        replicas = (*assignment.replicas, replica.broker)
        context.set_assignment(replica.partition, ReplicaAssignment(replicas, assignment.adding, assignment.removing))


def _to_offline(context: ControllerContext, replicas: list[PartitionReplica], batch: RequestBatch) -> Decision[None]:
    by_broker: dict[int, list[PartitionReplica]] = {}
    for replica in replicas:
        by_broker.setdefault(replica.broker, []).append(replica)
    for broker, on_broker in by_broker.items():
        for replica in on_broker:
            batch.add_stop_replica((broker,), replica.partition, delete=False)
        with_state = {r.partition: context.states[r.partition] for r in on_broker if r.partition in context.states}
        changes = yield from _leave_isr(context, broker, with_state)
        for replica in on_broker:
            tp = replica.partition
            goes = context.is_being_deleted(tp.topic)
            if tp in with_state and tp not in changes and not goes:
                yield Report(f"replica {replica} can't go to OFFLINE: its partition's state can't be written", "error")
                continue
            if changes.get(tp) and not goes:
                batch.add_leader_and_isr(_without(context.assignment(tp).replicas, broker), tp)
            batch.add_update_metadata(context.brokers, (tp,))
            yield _move(context, replica, ReplicaState.OFFLINE, changes.get(tp, ""))


def _to_deletion_started(
    context: ControllerContext, replicas: list[PartitionReplica], batch: RequestBatch
) -> Decision[None]:
    for replica in replicas:
        batch.add_stop_replica((replica.broker,), replica.partition, delete=True)
        yield _move(context, replica, ReplicaState.DELETION_STARTED)


def _to_deletion_successful(
    context: ControllerContext, replicas: list[PartitionReplica], batch: RequestBatch
) -> Decision[None]:
    for replica in replicas:
        yield _move(context, replica, ReplicaState.DELETION_SUCCESSFUL)


def _to_deletion_ineligible(
    context: ControllerContext, replicas: list[PartitionReplica], batch: RequestBatch
) -> Decision[None]:
    for replica in replicas:
        yield _move(context, replica, ReplicaState.DELETION_INELIGIBLE)


def _to_non_existent(
    context: ControllerContext, replicas: list[PartitionReplica], batch: RequestBatch
) -> Decision[None]:
    for replica in replicas:
        yield _move(context, replica, ReplicaState.NON_EXISTENT)
        context.replica_states.pop(replica, None)
        assignment = context.assignment(replica.partition)
        context.set_assignment(
            replica.partition,
            ReplicaAssignment(
                _without(assignment.replicas, replica.broker),
                _without(assignment.adding, replica.broker),
                _without(assignment.removing, replica.broker),
            ),
        )


_MOVES: Mapping[ReplicaState, Callable[[ControllerContext, list[PartitionReplica], RequestBatch], Decision[None]]] = {
    ReplicaState.NEW: _to_new,
    ReplicaState.ONLINE: _to_online,
    ReplicaState.OFFLINE: _to_offline,
    ReplicaState.DELETION_STARTED: _to_deletion_started,
    ReplicaState.DELETION_SUCCESSFUL: _to_deletion_successful,
    ReplicaState.DELETION_INELIGIBLE: _to_deletion_ineligible,
    ReplicaState.NON_EXISTENT: _to_non_existent,
}


# --- leaving the ISR ---------------------------------------------------------------------------------------------


def _leave_isr(
    context: ControllerContext, broker: int, known: dict[TopicPartition, LeaderAndIsr]
) -> Decision[dict[TopicPartition, str]]:
    """Remove the broker from the ISR of each partition; return the changes, empty where it was not in sync; without
    failed writes."""
    changes: dict[TopicPartition, str] = {}
    for _ in range(ROUNDS_MAX):
        wanted = {tp: without_replica(context, state, broker) for tp, state in known.items() if broker in state.isr}
        changes |= {tp: "" for tp in known if tp not in wanted}
        written: dict[TopicPartition, LeaderAndIsr] = (yield UpdatePartitionStates(wanted)) if wanted else {}
        for tp, state in written.items():
            changes[tp] = change_of(known[tp], state)
            context.states[tp] = state
        lost = tuple(tp for tp in wanted if tp not in written)
        if not lost:
            return changes
        known = yield ReadPartitionStates(lost)
        context.states.update(known)
    return changes


def without_replica(context: ControllerContext, state: LeaderAndIsr, broker: int) -> LeaderAndIsr:
    """Return the state without the replica. The last in-sync replica stays in the ISR: only it has all acknowledged
    records."""
    return LeaderAndIsr(
        NO_LEADER if state.leader == broker else state.leader,
        state.leader_epoch + 1,
        state.isr if len(state.isr) == 1 else _without(state.isr, broker),
        context.term.epoch,
        state.zk_version,
        recovering=state.recovering,
    )


def _without(brokers: tuple[int, ...], broker: int) -> tuple[int, ...]:
    return tuple(other for other in brokers if other != broker)


def _move(context: ControllerContext, replica: PartitionReplica, target: ReplicaState, detail: str = "") -> Moved:
    before = context.replica_states.get(replica, ReplicaState.NON_EXISTENT)
    moved = Moved(replica, (_NAMES[before], _NAMES[target]), detail)
    context.replica_states[replica] = target
    return moved
