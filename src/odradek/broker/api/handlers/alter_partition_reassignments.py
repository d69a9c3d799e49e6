"""AlterPartitionReassignments (key 45): start, change or cancel moves of replicas. For the controller.

Version 0. Not done: nothing.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized_on_cluster, denial
from odradek.broker.api.context import RequestContext
from odradek.broker.api.controller_requests import ask_controller
from odradek.broker.api.registry import Outcome, handles
from odradek.broker.controller.core.events import ReassignmentsAsked
from odradek.model.acls import AclOperation
from odradek.model.topology import TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


@handles(ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions="0-0", may_block=False)
def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, ctx: RequestContext
) -> AlterPartitionReassignmentsResponse | Outcome:
    wanted = {
        TopicPartition(topic.name, partition.partition_index): (
            None if partition.replicas is None else tuple(partition.replicas)
        )
        for topic in request.topics
        for partition in topic.partitions
    }
    if not authorized_on_cluster(ctx, AclOperation.ALTER):
        refusal = denial(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        refused = _response(dict.fromkeys(wanted, refusal))
        refused.error_code, refused.error_message = refusal.code, refusal.message
        return refused
    return ask_controller(ctx, lambda answer: ReassignmentsAsked(wanted, answer), _response)


def _response(
    answers: dict[TopicPartition, KafkaError | None] | KafkaError,
) -> AlterPartitionReassignmentsResponse:
    if isinstance(answers, KafkaError):
        return AlterPartitionReassignmentsResponse(error_code=answers.code, error_message=answers.message or None)
    topics: dict[str, ReassignableTopicResponse] = {}
    for tp, error in answers.items():
        topic = topics.setdefault(tp.topic, ReassignableTopicResponse(name=tp.topic))
        topic.partitions.append(
            ReassignablePartitionResponse(
                partition_index=tp.partition,
                error_code=error.code if error else ErrorCode.NONE,
                error_message=(error.message or None) if error else None,
            )
        )
    return AlterPartitionReassignmentsResponse(responses=list(topics.values()))
