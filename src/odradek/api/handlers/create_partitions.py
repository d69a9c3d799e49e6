"""CreatePartitions (key 37): more partitions for an existing topic. There is no way back to fewer.

Versions 0-3. Not done: quotas on creation.
"""

from odradek.api.context import RequestContext
from odradek.api.registry import handles
from odradek.base.errors import KafkaError
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


@handles(ApiKey.CREATE_PARTITIONS, versions="0-3", may_block=True)
def create_partitions(request: CreatePartitionsRequest, ctx: RequestContext) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(results=[_add(topic, request.validate_only, ctx) for topic in request.topics])


def _add(topic: CreatePartitionsTopic, validate_only: bool, ctx: RequestContext) -> CreatePartitionsTopicResult:
    result = CreatePartitionsTopicResult(name=topic.name)
    assignments = None if topic.assignments is None else [tuple(a.broker_ids) for a in topic.assignments]
    try:
        ctx.broker.topics.add_partitions(topic.name, topic.count, assignments, validate_only=validate_only)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message or None
    return result
