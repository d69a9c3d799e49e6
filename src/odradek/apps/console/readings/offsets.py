"""Offsets of many partitions at once, as far as brokers answer: one that is silent costs its own partitions only."""

from collections import defaultdict
from collections.abc import Iterable

from odradek.base.errors import KafkaError
from odradek.client.broker_client import ConnectionFailed
from odradek.client.cluster_client import ClusterClient, TopicState
from odradek.model.topology import NO_LEADER, TopicPartition
from odradek.protocol.messages.list_offsets import (
    LATEST,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

_CONSUMER = -1
_DEBUGGER = -2  # any replica answers, not only the leader, and tells the end of its own log


def high_watermarks(client: ClusterClient, topics: Iterable[TopicState]) -> dict[TopicPartition, int]:
    """Up to where consumers can read."""
    return _by_leader(client, topics, LATEST)


def offsets_at(client: ClusterClient, topics: Iterable[TopicState], time: int) -> dict[TopicPartition, int]:
    return _by_leader(client, topics, time)


def offsets_of_replicas(
    client: ClusterClient, broker: int, partitions: Iterable[TopicPartition], time: int
) -> dict[TopicPartition, int]:
    """Where the copies on this broker begin or end."""
    return _ask(client, broker, partitions, time, _DEBUGGER)


def _by_leader(client: ClusterClient, topics: Iterable[TopicState], time: int) -> dict[TopicPartition, int]:
    by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
    for topic in topics:
        for partition in topic.partitions:
            by_leader[partition.leader].append(TopicPartition(topic.name, partition.partition))
    by_leader.pop(NO_LEADER, None)
    found: dict[TopicPartition, int] = {}
    for leader, partitions in by_leader.items():
        found.update(_ask(client, leader, partitions, time, _CONSUMER))
    return found


def _ask(
    client: ClusterClient, broker: int, partitions: Iterable[TopicPartition], time: int, replica_id: int
) -> dict[TopicPartition, int]:
    topics: dict[str, ListOffsetsTopic] = {}
    for tp in partitions:
        topic = topics.setdefault(tp.topic, ListOffsetsTopic(name=tp.topic, partitions=[]))
        topic.partitions.append(ListOffsetsPartition(partition_index=tp.partition, timestamp=time))
    request = ListOffsetsRequest(replica_id=replica_id, topics=list(topics.values()))
    try:
        answer = client.ask_broker(broker, request, ListOffsetsResponse)
    except (KafkaError, ConnectionFailed):
        return {}
    return {
        TopicPartition(topic.name, partition.partition_index): partition.offset
        for topic in answer.topics
        for partition in topic.partitions
        if not partition.error_code and partition.offset >= 0
    }
