"""StopReplica (key 5): the controller tells this broker to serve replicas no more, and perhaps to delete them.

Versions 0-4. v1 groups by topic, v3 says per partition whether to delete it, and in which leader epoch it was asked.
Not done: nothing.
"""

from odradek.base.errors import ErrorCode
from odradek.broker.api.authorization import authorized_on_cluster
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.model.acls import AclOperation
from odradek.model.topology import TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
)

FIRST_WITH_STATES = 3


@handles(ApiKey.STOP_REPLICA, versions="0-4", may_block=False)
def stop_replica(request: StopReplicaRequest, ctx: RequestContext) -> StopReplicaResponse | Outcome:
    if not authorized_on_cluster(ctx, AclOperation.CLUSTER_ACTION):
        return StopReplicaResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    def response(refusal: ErrorCode) -> StopReplicaResponse:
        if refusal:
            return StopReplicaResponse(error_code=refusal)
        return _response(_stop(_asked(request, ctx.version), request, ctx))

    ctx.broker.control.submit(request, ctx.header.correlation_id, ctx.reply_with(response))
    return LATER


def _asked(request: StopReplicaRequest, version: int) -> dict[TopicPartition, StopReplicaPartitionState]:
    if version >= FIRST_WITH_STATES:
        return {
            TopicPartition(topic.topic_name, state.partition_index): state
            for topic in request.topic_states
            for state in topic.partition_states
        }
    if version == 0:
        tps = [TopicPartition(p.topic_name, p.partition_index) for p in request.ungrouped_partitions]
    else:
        tps = [TopicPartition(topic.name, number) for topic in request.topics for number in topic.partition_indexes]
    return {
        tp: StopReplicaPartitionState(partition_index=tp.partition, delete_partition=request.delete_partitions)
        for tp in tps
    }


def _stop(
    asked: dict[TopicPartition, StopReplicaPartitionState], request: StopReplicaRequest, ctx: RequestContext
) -> dict[TopicPartition, ErrorCode]:
    errors: dict[TopicPartition, ErrorCode] = {}
    for delete in (False, True):
        epochs = {tp: state.leader_epoch for tp, state in asked.items() if state.delete_partition is delete}
        if epochs:
            errors |= ctx.broker.roles.stop(
                epochs,
                delete=delete,
                leader_epochs=epochs,
                controller_id=request.controller_id,
                controller_epoch=request.controller_epoch,
            )
    return errors


def _response(errors: dict[TopicPartition, ErrorCode]) -> StopReplicaResponse:
    return StopReplicaResponse(
        partition_errors=[
            StopReplicaPartitionError(topic_name=tp.topic, partition_index=tp.partition, error_code=code)
            for tp, code in errors.items()
        ]
    )
