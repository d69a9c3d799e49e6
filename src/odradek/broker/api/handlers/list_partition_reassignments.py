"""ListPartitionReassignments (key 46): the moves of replicas that are under way. For the controller.

Version 0. Not done: nothing.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized_on_cluster, denial
from odradek.broker.api.context import RequestContext
from odradek.broker.api.controller_requests import ask_controller
from odradek.broker.api.registry import Outcome, handles
from odradek.broker.controller.core.events import ReassignmentsListed
from odradek.model.acls import AclOperation
from odradek.model.topology import ReplicaAssignment, TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


@handles(ApiKey.LIST_PARTITION_REASSIGNMENTS, versions="0-0", may_block=False)
def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, ctx: RequestContext
) -> ListPartitionReassignmentsResponse | Outcome:
    if not authorized_on_cluster(ctx, AclOperation.DESCRIBE):
        return _response(denial(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    wanted = None
    if request.topics is not None:
        wanted = frozenset(TopicPartition(t.name, number) for t in request.topics for number in t.partition_indexes)
    return ask_controller(ctx, lambda answer: ReassignmentsListed(wanted, answer), _response)


def _response(ongoing: dict[TopicPartition, ReplicaAssignment] | KafkaError) -> ListPartitionReassignmentsResponse:
    if isinstance(ongoing, KafkaError):
        return ListPartitionReassignmentsResponse(error_code=ongoing.code, error_message=ongoing.message or None)
    topics: dict[str, OngoingTopicReassignment] = {}
    for tp, assignment in ongoing.items():
        topic = topics.setdefault(tp.topic, OngoingTopicReassignment(name=tp.topic))
        topic.partitions.append(
            OngoingPartitionReassignment(
                partition_index=tp.partition,
                replicas=list(assignment.replicas),
                adding_replicas=list(assignment.adding),
                removing_replicas=list(assignment.removing),
            )
        )
    return ListPartitionReassignmentsResponse(topics=list(topics.values()))
