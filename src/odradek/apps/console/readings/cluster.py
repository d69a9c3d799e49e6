"""The cluster as a whole: brokers, controller, topics. One Metadata request, which any Kafka answers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from odradek.base.clock import SYSTEM_CLOCK
from odradek.client.cluster_client import ClusterClient, TopicState, topic_states
from odradek.protocol.messages.metadata import MetadataResponse


@dataclass(frozen=True, slots=True)
class BrokerState:
    id: int
    host: str
    port: int
    rack: str | None


@dataclass(frozen=True, slots=True)
class ClusterState:
    at_ms: int
    cluster_id: str
    controller: int
    """-1: none at the moment."""
    brokers: tuple[BrokerState, ...]
    topics: Mapping[str, TopicState]
    known_brokers: frozenset[int]
    """The live ones, those seen before, and all that replicas are on."""
    answer: MetadataResponse | None = None
    """Response that it was read from."""


def read_cluster(client: ClusterClient, before: ClusterState | None) -> ClusterState:
    response = client.metadata(None)
    if before is not None and before.answer is response:
        return replace(before, at_ms=SYSTEM_CLOCK.now_ms())
    brokers = tuple(
        BrokerState(broker.node_id, broker.host, broker.port, broker.rack)
        for broker in sorted(response.brokers, key=lambda broker: broker.node_id)
    )
    topics = topic_states(response)
    placed = {broker for topic in topics.values() for partition in topic.partitions for broker in partition.replicas}
    live = {broker.id for broker in brokers}
    return ClusterState(
        at_ms=SYSTEM_CLOCK.now_ms(),
        cluster_id=response.cluster_id or "",
        controller=response.controller_id if response.controller_id in live else -1,
        brokers=brokers,
        topics=topics,
        known_brokers=frozenset(placed | live | (before.known_brokers if before else frozenset())),
        answer=response,
    )
