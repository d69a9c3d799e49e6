"""Reads a cluster for the planner: who lives, who holds what, how large it is, and how much room there is."""

from odradek.base.errors import KafkaError
from odradek.client.cluster_client import ClusterClient
from odradek.client.reassignments import ongoing_reassignments
from odradek.model.topology import TopicPartition
from odradek.network.broker_client import ConnectionFailed
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from odradek.reassign.view import BrokerView, ClusterView, PartitionView

MIN_ISR = "min.insync.replicas"
_TOPIC = 2


def read_view(client: ClusterClient) -> ClusterView:
    cluster = client.ask_any(DescribeClusterRequest(), DescribeClusterResponse)
    topics = client.topics()
    moving = ongoing_reassignments(client)
    sizes: dict[TopicPartition, int] = {}
    brokers: dict[int, BrokerView] = {}
    for member in cluster.brokers:
        try:
            answer = client.ask_broker(member.broker_id, DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
        except (KafkaError, ConnectionFailed):
            continue  # it is dying, and as good as gone for a plan
        for tp, size in _sizes(answer).items():
            sizes[tp] = max(size, sizes.get(tp, 0))
        total, usable = _room(answer)
        brokers[member.broker_id] = BrokerView(member.broker_id, member.rack, total, usable)
    return ClusterView(
        brokers,
        {
            tp: PartitionView(p.replicas, p.leader, p.isr, sizes.get(tp, 0), tp in moving)
            for topic in topics.values()
            for p in topic.partitions
            for tp in (TopicPartition(topic.name, p.partition),)
        },
        _min_isr(client, sorted(topics)),
    )


def cluster_id(client: ClusterClient) -> str:
    return client.ask_any(DescribeClusterRequest(), DescribeClusterResponse).cluster_id


def _sizes(answer: DescribeLogDirsResponse) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.name, partition.partition_index): partition.partition_size
        for directory in answer.results
        for topic in directory.topics
        for partition in topic.partitions
        if not partition.is_future_key
    }


def _room(answer: DescribeLogDirsResponse) -> tuple[int | None, int | None]:
    """Of all volumes. Directories of the same size with the same room are taken for one volume."""
    volumes = {(d.total_bytes, d.usable_bytes) for d in answer.results if not d.error_code and d.total_bytes > 0}
    return (sum(v[0] for v in volumes), sum(v[1] for v in volumes)) if volumes else (None, None)


def _min_isr(client: ClusterClient, topics: list[str]) -> dict[str, int]:
    if not topics:
        return {}
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=_TOPIC, resource_name=topic, configuration_keys=[MIN_ISR])
            for topic in topics
        ]
    )
    answer = client.ask_any(request, DescribeConfigsResponse)
    return {
        result.resource_name: int(config.value)
        for result in answer.results
        for config in result.configs
        if config.name == MIN_ISR and config.value
    }
