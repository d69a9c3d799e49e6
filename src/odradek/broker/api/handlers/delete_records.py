"""DeleteRecords (key 21): moves the log start offset of a partition forward; records before it can't be read any more.

Versions 0-2. Offset -1 means up to the high watermark. Answered when the logs of all live replicas start there. Not
done: nothing.
"""

from collections.abc import Iterable

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import denial, denied_topics
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.broker.replication.leader.delayed_delete import DeleteOutcomes
from odradek.model.acls import AclOperation
from odradek.model.topic_names import is_internal
from odradek.model.topology import TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)


@handles(ApiKey.DELETE_RECORDS, versions="0-2", may_block=True)
def delete_records(request: DeleteRecordsRequest, ctx: RequestContext) -> Outcome:
    denied = denied_topics(ctx, AclOperation.DELETE, [topic.name for topic in request.topics])
    offsets = {
        TopicPartition(topic.name, asked.partition_index): asked.offset
        for topic in request.topics
        for asked in topic.partitions
        if topic.name not in denied and not is_internal(topic.name)
    }
    refused = denial(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    def done(outcomes: DeleteOutcomes) -> DeleteRecordsResponse:
        return _response(request, {**outcomes, **{tp: refused for tp in _partitions(request) if tp.topic in denied}})

    ctx.broker.replicas.delete_records(offsets, timeout_ms=request.timeout_ms, done=ctx.reply_with(done))
    return LATER


def _partitions(request: DeleteRecordsRequest) -> Iterable[TopicPartition]:
    return (TopicPartition(topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions)


def _response(request: DeleteRecordsRequest, outcomes: DeleteOutcomes) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    _partition(asked.partition_index, outcomes.get(TopicPartition(topic.name, asked.partition_index)))
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _partition(index: int, outcome: int | KafkaError | None) -> DeleteRecordsPartitionResult:
    if isinstance(outcome, int):
        return DeleteRecordsPartitionResult(partition_index=index, low_watermark=outcome)
    code = (
        ErrorCode.INVALID_TOPIC_EXCEPTION if outcome is None else outcome.code
    )  # None: records of internal topics stay
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=-1, error_code=code)
