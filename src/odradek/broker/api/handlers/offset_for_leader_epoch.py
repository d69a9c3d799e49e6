"""OffsetForLeaderEpoch (key 23): where the leader's log leaves an epoch, so that others can truncate to it.

Versions 0-4. v2 fences by the asker's leader epoch; v3 tells followers from consumers. Not done: nothing.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import NONE_DENIED, authorized_on_cluster, denied_topics
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.model.acls import AclOperation
from odradek.model.topology import TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


@handles(ApiKey.OFFSET_FOR_LEADER_EPOCH, versions="0-4", may_block=False)
def offset_for_leader_epoch(request: OffsetForLeaderEpochRequest, ctx: RequestContext) -> OffsetForLeaderEpochResponse:
    denied = NONE_DENIED
    if not authorized_on_cluster(ctx, AclOperation.CLUSTER_ACTION, log_denied=False):
        denied = denied_topics(ctx, AclOperation.DESCRIBE, [topic.topic for topic in request.topics])
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    EpochEndOffset(partition=asked.partition, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                    if topic.topic in denied
                    else _epoch_end(topic.topic, asked, ctx)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _epoch_end(topic: str, asked: OffsetForLeaderPartition, ctx: RequestContext) -> EpochEndOffset:
    answer = EpochEndOffset(partition=asked.partition)
    try:
        log = ctx.broker.replicas.find(TopicPartition(topic, asked.partition)).leader_log(asked.current_leader_epoch)
        answer.leader_epoch, answer.end_offset = log.epochs.end_offset_for(asked.leader_epoch, log.log_end_offset)
    except KafkaError as error:
        answer.error_code = error.code
    return answer
