"""DescribeCluster for the tools: the id of the cluster, its controller, its brokers with their racks, and the user's
rights on it."""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.cluster_client import ClusterClient
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse


def describe_cluster(client: ClusterClient) -> DescribeClusterResponse:
    return client.ask_any(DescribeClusterRequest(), DescribeClusterResponse)


def cluster_id(client: ClusterClient) -> str:
    return describe_cluster(client).cluster_id


def authorized_operations(client: ClusterClient) -> int:
    """Operations that the user may do on the cluster, as bits numbered like the operations."""
    answer = client.ask_any(DescribeClusterRequest(include_cluster_authorized_operations=True), DescribeClusterResponse)
    if answer.error_code:
        raise KafkaError(ErrorCode(answer.error_code), answer.error_message or "")
    return max(answer.cluster_authorized_operations, 0)
