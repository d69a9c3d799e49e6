"""A Spark query as a consumer group: its offsets are committed where every Kafka tool looks for lag.

Spark itself keeps offsets in its checkpoint and never reads these: they are for people and dashboards. So a commit that
fails is tried again with the next batch, and never holds a query up.
"""

from collections.abc import Mapping

from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.cluster_client import ClusterClient
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

_GROUP = 0


def commit_offsets(client: ClusterClient, group: str, offsets: Mapping[str, Mapping[str, int]]) -> None:
    """Commits as one who is no member of the group: it has none. Raises what the coordinator says."""
    request = OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=int(partition), committed_offset=offset, committed_metadata=""
                    )
                    for partition, offset in partitions.items()
                ],
            )
            for topic, partitions in offsets.items()
        ],
    )
    client.retrying(lambda: _commit(client, group, request))


def _commit(client: ClusterClient, group: str, request: OffsetCommitRequest) -> None:
    answer = client.ask_broker(_coordinator(client, group), request, OffsetCommitResponse)
    for topic in answer.topics:
        for partition in topic.partitions:
            if partition.error_code:
                code = ErrorCode(partition.error_code)
                raise KafkaError(code, f"group {group}: {topic.name}-{partition.partition_index}: {code.name}")


def _coordinator(client: ClusterClient, group: str) -> int:
    request = FindCoordinatorRequest(key=group, key_type=_GROUP, coordinator_keys=[group])
    answer = client.ask_any(request, FindCoordinatorResponse)
    code, node = answer.error_code, answer.node_id
    if answer.coordinators:  # from version 4 on
        code, node = answer.coordinators[0].error_code, answer.coordinators[0].node_id
    if code:
        raise KafkaError(ErrorCode(code), f"group {group} has no coordinator: {ErrorCode(code).name}")
    return node
