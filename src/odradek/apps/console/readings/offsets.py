"""Offsets of many partitions at once; partitions of silent brokers are left out."""

from collections import defaultdict
from collections.abc import Iterable

from odradek.base.errors import KafkaError
from odradek.client.broker_client import ConnectionFailed
from odradek.client.cluster_client import ClusterClient, TopicState
from odradek.client.partition_offsets import ask_offsets
from odradek.model.topology import NO_LEADER, TopicPartition
from odradek.protocol.isolation import IsolationLevel
from odradek.protocol.messages.list_offsets import CONSUMER_REPLICA_ID, DEBUGGING_REPLICA_ID, LATEST


def high_watermarks(client: ClusterClient, topics: Iterable[TopicState]) -> dict[TopicPartition, int]:
    """Return the offsets up to which consumers can read."""
    return _by_leader(client, topics, LATEST)


def last_stable_offsets(client: ClusterClient, topics: Iterable[TopicState]) -> dict[TopicPartition, int]:
    """Return the offsets up to which consumers of committed records can read."""
    return _by_leader(client, topics, LATEST, IsolationLevel.READ_COMMITTED)


def offsets_at(client: ClusterClient, topics: Iterable[TopicState], time: int) -> dict[TopicPartition, int]:
    return _by_leader(client, topics, time)


def offsets_of_replicas(
    client: ClusterClient, broker: int, partitions: Iterable[TopicPartition], time: int
) -> dict[TopicPartition, int]:
    """Return the first or the end offsets of the replicas on this broker."""
    return _ask(client, broker, partitions, time, DEBUGGING_REPLICA_ID)


def _by_leader(
    client: ClusterClient,
    topics: Iterable[TopicState],
    time: int,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[TopicPartition, int]:
    by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
    for topic in topics:
        for partition in topic.partitions:
            by_leader[partition.leader].append(TopicPartition(topic.name, partition.partition))
    by_leader.pop(NO_LEADER, None)
    found: dict[TopicPartition, int] = {}
    for leader, partitions in by_leader.items():
        found.update(_ask(client, leader, partitions, time, CONSUMER_REPLICA_ID, isolation))
    return found


def _ask(
    client: ClusterClient,
    broker: int,
    partitions: Iterable[TopicPartition],
    time: int,
    replica_id: int,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[TopicPartition, int]:
    try:
        answers = ask_offsets(client, broker, dict.fromkeys(partitions, time), replica_id, isolation)
    except (KafkaError, ConnectionFailed):
        return {}
    return {tp: answer.offset for tp, answer in answers.items() if not answer.error_code and answer.offset >= 0}
