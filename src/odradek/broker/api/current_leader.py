"""Current leader of a partition, for clients that sent a request to another broker (KIP-951)."""

from typing import NamedTuple

from odradek.base.errors import KafkaError
from odradek.broker.api.context import RequestContext
from odradek.model.topology import NO_LEADER, TopicPartition


class CurrentLeader(NamedTuple):
    id: int
    epoch: int


class LeaderNode(NamedTuple):
    id: int
    host: str
    port: int
    rack: str | None


def current_leader(tp: TopicPartition, ctx: RequestContext) -> CurrentLeader:
    """Leader and epoch known to this broker's replica, or else to its metadata."""
    try:
        partition = ctx.broker.replicas.find(tp)
        return CurrentLeader(partition.leader_id, partition.leader_epoch)
    except KafkaError:
        known = ctx.broker.metadata.image.partition(tp)
        return CurrentLeader(NO_LEADER, -1) if known is None else CurrentLeader(known.leader, known.leader_epoch)


def leader_node(leader: CurrentLeader, ctx: RequestContext) -> LeaderNode | None:
    """Return the address of the leader for a client that came by this listener."""
    broker = ctx.broker.metadata.image.brokers.get(leader.id)
    endpoint = broker.endpoint(ctx.connection.listener_name) if broker else None
    return LeaderNode(leader.id, endpoint.host, endpoint.port, broker.rack) if broker and endpoint else None
