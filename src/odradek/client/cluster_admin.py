"""DescribeCluster for the tools: the id of the cluster, its controller, its brokers with their racks."""

from odradek.client.cluster_client import ClusterClient
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse


def describe_cluster(client: ClusterClient) -> DescribeClusterResponse:
    return client.ask_any(DescribeClusterRequest(), DescribeClusterResponse)


def cluster_id(client: ClusterClient) -> str:
    return describe_cluster(client).cluster_id
