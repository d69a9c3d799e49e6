"""Rights of the user on the cluster, as the brokers tell them: what the console itself may show of its files."""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.cluster_client import ClusterClient
from odradek.model.acls import AclOperation
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

Rights = frozenset[AclOperation]


def read_rights(client: ClusterClient, before: Rights | None) -> Rights:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    answer = client.ask_any(request, DescribeClusterResponse)
    if answer.error_code:
        raise KafkaError(ErrorCode(answer.error_code), answer.error_message or "")
    bits = max(answer.cluster_authorized_operations, 0)
    return frozenset(operation for operation in AclOperation if bits >> operation & 1)
