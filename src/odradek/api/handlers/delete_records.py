"""DeleteRecords (key 21): the log of a partition starts later; what was before can't be read any more.

Versions 0-2. Offset -1 means up to the high watermark. Not done: nothing that one replica needs.
"""

from odradek.api.context import RequestContext
from odradek.api.registry import handles
from odradek.base.errors import ErrorCode, KafkaError
from odradek.model.topic_names import is_internal
from odradek.model.topology import TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)


@handles(ApiKey.DELETE_RECORDS, versions="0-2", may_block=True)
def delete_records(request: DeleteRecordsRequest, ctx: RequestContext) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name, partitions=[_delete(topic.name, asked, ctx) for asked in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _delete(topic: str, asked: DeleteRecordsPartition, ctx: RequestContext) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=-1)
    try:
        if is_internal(topic):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot delete records of internal topic {topic}")
        tp = TopicPartition(topic, asked.partition_index)
        result.low_watermark = ctx.broker.replicas.delete_records(tp, asked.offset)
    except KafkaError as error:
        result.error_code = error.code
    return result
