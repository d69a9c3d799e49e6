"""Leader election: one pure function per reason to elect.

Each takes the state in the partition's node and returns the state to write, with the replicas that must be notified; or
None when no replica may lead. Every election raises the leader epoch, also when the leader stays.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum

from odradek.base.value_classes import dataclass
from odradek.broker.controller.core.context import ControllerContext
from odradek.model.topology import LeaderAndIsr, PartitionReplica, TopicPartition


class ElectionStrategy(Enum):
    """The values are Apache Kafka's names, which clients see in messages."""

    OFFLINE = "OfflinePartitionLeaderElectionStrategy(false)"
    OFFLINE_UNCLEAN = "OfflinePartitionLeaderElectionStrategy(true)"
    PREFERRED = "PreferredReplicaPartitionLeaderElectionStrategy"
    REASSIGN = "ReassignPartitionLeaderElectionStrategy"
    CONTROLLED_SHUTDOWN = "ControlledShutdownPartitionLeaderElectionStrategy"


@dataclass(frozen=True, slots=True)
class Elected:
    state: LeaderAndIsr
    recipients: tuple[int, ...]
    """The brokers that get a LeaderAndIsr request."""


def elect(
    context: ControllerContext, tp: TopicPartition, state: LeaderAndIsr, strategy: ElectionStrategy
) -> Elected | None:
    return _ELECTIONS[strategy](context, tp, state)


def first_leader(context: ControllerContext, tp: TopicPartition) -> LeaderAndIsr | None:
    """Elect the first leader of a partition: the first live replica leads, all live ones are in sync."""
    live = context.online_replicas(tp)
    return LeaderAndIsr(live[0], 0, live, context.term.epoch) if live else None


def lacks_live_isr(context: ControllerContext, tp: TopicPartition, state: LeaderAndIsr) -> bool:
    return not any(context.is_online(PartitionReplica(tp, broker)) for broker in state.isr)


def elect_after_failure(context: ControllerContext, tp: TopicPartition, state: LeaderAndIsr) -> Elected | None:
    """Elect the first live in-sync replica; if there is none and unclean elections are allowed, any live replica."""
    return _elect_offline(context, tp, state, unclean=context.unclean_election_enabled(tp.topic))


def elect_uncleanly(context: ControllerContext, tp: TopicPartition, state: LeaderAndIsr) -> Elected | None:
    """Elect any live replica if none is in sync: the operator accepts that records may be lost."""
    return _elect_offline(context, tp, state, unclean=True)


def _elect_offline(
    context: ControllerContext, tp: TopicPartition, state: LeaderAndIsr, *, unclean: bool
) -> Elected | None:
    live = context.online_replicas(tp)
    leader = next((broker for broker in live if broker in state.isr), None)
    if leader is not None:
        isr = tuple(broker for broker in state.isr if context.is_online(PartitionReplica(tp, broker)))
        return Elected(_next_state(context, state, leader, isr), live)
    if not unclean or not live:
        return None
    return Elected(replace(_next_state(context, state, live[0], (live[0],)), recovering=True), live)


def elect_preferred(context: ControllerContext, tp: TopicPartition, state: LeaderAndIsr) -> Elected | None:
    """Elect the first of the assignment, if it is alive and in sync; no other."""
    replicas = context.assignment(tp).replicas
    if not replicas or not _may_lead(context, tp, replicas[0], state):
        return None
    return Elected(_next_state(context, state, replicas[0], state.isr), replicas)


def elect_for_reassignment(context: ControllerContext, tp: TopicPartition, state: LeaderAndIsr) -> Elected | None:
    """Elect the first live in-sync replica of the target."""
    target = context.assignment(tp).target
    leader = next((broker for broker in target if _may_lead(context, tp, broker, state)), None)
    return None if leader is None else Elected(_next_state(context, state, leader, state.isr), target)


def elect_for_shutdown(context: ControllerContext, tp: TopicPartition, state: LeaderAndIsr) -> Elected | None:
    """Elect an in-sync replica whose broker is not shutting down. The brokers that shut down are notified too, so that
    they stop leading.
    """
    recipients = tuple(
        broker
        for broker in context.assignment(tp).replicas
        if context.is_online(PartitionReplica(tp, broker), include_shutting_down=True)
    )
    leader = next((b for b in recipients if b in state.isr and b not in context.shutting_down), None)
    if leader is None:
        return None
    isr = tuple(broker for broker in state.isr if broker not in context.shutting_down)
    return Elected(_next_state(context, state, leader, isr), recipients)


def _may_lead(context: ControllerContext, tp: TopicPartition, broker: int, state: LeaderAndIsr) -> bool:
    return broker in state.isr and context.is_online(PartitionReplica(tp, broker))


def _next_state(context: ControllerContext, state: LeaderAndIsr, leader: int, isr: tuple[int, ...]) -> LeaderAndIsr:
    return LeaderAndIsr(
        leader, state.leader_epoch + 1, isr, context.term.epoch, state.zk_version, recovering=state.recovering
    )


_ELECTIONS: Mapping[ElectionStrategy, Callable[[ControllerContext, TopicPartition, LeaderAndIsr], Elected | None]] = {
    ElectionStrategy.OFFLINE: elect_after_failure,
    ElectionStrategy.OFFLINE_UNCLEAN: elect_uncleanly,
    ElectionStrategy.PREFERRED: elect_preferred,
    ElectionStrategy.REASSIGN: elect_for_reassignment,
    ElectionStrategy.CONTROLLED_SHUTDOWN: elect_for_shutdown,
}
