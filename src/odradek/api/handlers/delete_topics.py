"""DeleteTopics (key 20): topics go, with their records, by name or by id.

Versions 0-6. v5 adds messages to errors, v6 topic ids. Not done: quotas on deletion.
"""

from uuid import UUID

from odradek.api.context import RequestContext
from odradek.api.registry import handles
from odradek.base.errors import ErrorCode, KafkaError
from odradek.model.topology import ZERO_UUID
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)


@handles(ApiKey.DELETE_TOPICS, versions="0-6", may_block=True)
def delete_topics(request: DeleteTopicsRequest, ctx: RequestContext) -> DeleteTopicsResponse:
    if ctx.version < 6:
        named: list[tuple[str | None, UUID]] = [(name, ZERO_UUID) for name in request.topic_names]
    else:
        named = [(topic.name, topic.topic_id) for topic in request.topics]
    return DeleteTopicsResponse(responses=[_delete(name, topic_id, ctx) for name, topic_id in named])


def _delete(name: str | None, topic_id: UUID, ctx: RequestContext) -> DeletableTopicResult:
    result = DeletableTopicResult(name=name, topic_id=topic_id)
    image = ctx.broker.metadata.image
    try:
        if not ctx.broker.config.delete_topic_enable:
            raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled (delete.topic.enable).")
        if name is None:
            result.name = name = image.topic_names.get(topic_id)
            if name is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        elif topic_id != ZERO_UUID:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Name a topic by its name or by its id, not by both.")
        elif (topic := image.topics.get(name)) is not None and ctx.version >= 6:
            result.topic_id = topic.id
        ctx.broker.topics.delete(name)
        ctx.broker.groups.forget_topic(name)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message or None
    return result
