"""Reassignments through the controller: begin, cancel, list."""

from functools import partial

from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.cluster_client import NOT_YET_DONE, ClusterClient
from odradek.model.topology import ReplicaAssignment, TopicPartition
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def alter_reassignments(
    client: ClusterClient, wanted: dict[TopicPartition, list[int] | None]
) -> dict[TopicPartition, tuple[ErrorCode, str | None]]:
    """Start moves to the wanted replicas, or cancel a move for None. Return the answer for each partition."""
    topics: dict[str, ReassignableTopic] = {}
    for tp, replicas in wanted.items():
        topic = topics.setdefault(tp.topic, ReassignableTopic(name=tp.topic))
        topic.partitions.append(ReassignablePartition(partition_index=tp.partition, replicas=replicas))
    request = AlterPartitionReassignmentsRequest(timeout_ms=client.request_timeout_ms, topics=list(topics.values()))

    def ask() -> AlterPartitionReassignmentsResponse:
        answer = client.ask_controller(request, AlterPartitionReassignmentsResponse)
        _raise_for(answer.error_code, answer.error_message)
        return answer

    return {
        TopicPartition(topic.name, p.partition_index): (ErrorCode(p.error_code), p.error_message)
        for topic in client.retrying(ask, NOT_YET_DONE).responses
        for p in topic.partitions
    }


def ongoing_reassignments(client: ClusterClient) -> dict[TopicPartition, ReplicaAssignment]:
    def ask(request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
        answer = client.ask_controller(request, ListPartitionReassignmentsResponse)
        _raise_for(answer.error_code, answer.error_message)
        return answer

    request = ListPartitionReassignmentsRequest(timeout_ms=client.request_timeout_ms, topics=None)
    return {
        TopicPartition(topic.name, p.partition_index): ReplicaAssignment(
            tuple(p.replicas), tuple(p.adding_replicas), tuple(p.removing_replicas)
        )
        for topic in client.retrying(partial(ask, request), NOT_YET_DONE).topics
        for p in topic.partitions
    }


def _raise_for(code: int, message: str | None) -> None:
    if code:
        raise KafkaError(ErrorCode(code), message or "")
