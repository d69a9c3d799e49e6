"""Failure of replicas, with their broker or their log directory: elects other leaders and shrinks the ISRs."""

from collections.abc import Iterable

from odradek.broker.controller.core.context import ControllerContext, PartitionState, ReplicaState
from odradek.broker.controller.core.effects import Decision
from odradek.broker.controller.core.partition_state_machine import elect_missing_leaders, move_partitions
from odradek.broker.controller.core.replica_state_machine import move_replicas
from odradek.broker.controller.core.request_batch import RequestBatch
from odradek.broker.controller.core.topic_deletion import fail_deletions
from odradek.model.topology import PartitionReplica


def replicas_gone(context: ControllerContext, replicas: Iterable[PartitionReplica]) -> Decision[None]:
    """Handle replicas that went offline, as the context already shows. Leaders first: clients wait for them."""
    to_delete: list[PartitionReplica] = []
    to_keep: list[PartitionReplica] = []
    for replica in replicas:
        (to_delete if context.is_being_deleted(replica.partition.topic) else to_keep).append(replica)
    leaderless = [
        tp
        for tp, state in context.states.items()
        if not context.is_online(PartitionReplica(tp, state.leader))
        and context.partition_state(tp) is not PartitionState.OFFLINE
        and not context.is_being_deleted(tp.topic)
    ]
    yield from move_partitions(context, leaderless, PartitionState.OFFLINE)
    elected = yield from elect_missing_leaders(context)
    yield from move_replicas(context, to_keep, ReplicaState.OFFLINE)
    if to_delete:
        yield from fail_deletions(context, to_delete)
    if not to_keep and not elected:
        batch = RequestBatch(context)
        batch.add_update_metadata(context.brokers)
        yield from batch.flush()
