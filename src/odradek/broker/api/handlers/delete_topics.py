"""DeleteTopics (key 20): topics go, with their records, by name or by id.

Versions 0-6. v5 adds messages to errors and THROTTLING_QUOTA_EXCEEDED, v6 topic ids. Not done: nothing.
"""

from uuid import UUID

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.admin.topic_admin import Refusals
from odradek.broker.api.authorization import denial, denied_topics
from odradek.broker.api.context import RequestContext
from odradek.broker.api.mutation_permits import permit_for
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.model.acls import AclOperation
from odradek.model.topology import ZERO_UUID
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse


@handles(ApiKey.DELETE_TOPICS, versions="0-6", may_block=True)
def delete_topics(request: DeleteTopicsRequest, ctx: RequestContext) -> Outcome:
    if ctx.version < 6:
        named: list[tuple[str | None, UUID]] = [(name, ZERO_UUID) for name in request.topic_names]
    else:
        named = [(topic.name, topic.topic_id) for topic in request.topics]
    results = [_result(name, topic_id, ctx) for name, topic_id in named]
    _refuse_denied(results, ctx)

    def response(refusals: Refusals) -> DeleteTopicsResponse:
        for result in results:
            if result.name in refusals and not result.error_code:
                _refuse(result, refusals[result.name])
        return DeleteTopicsResponse(responses=results)

    wanted = [result.name for result in results if result.name is not None and not result.error_code]
    permit = permit_for(ctx, strict_since=5)
    ctx.broker.topics.delete(wanted, timeout_ms=request.timeout_ms, permit=permit, done=ctx.reply_with(response))
    return LATER


def _result(name: str | None, topic_id: UUID, ctx: RequestContext) -> DeletableTopicResult:
    result = DeletableTopicResult(name=name, topic_id=topic_id)
    if not ctx.broker.controller.is_active:
        result.error_code = ErrorCode.NOT_CONTROLLER
    elif name is None:
        result.name = ctx.broker.metadata.image.topic_names.get(topic_id)
        if result.name is None:
            _refuse(result, KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID."))
    elif topic_id != ZERO_UUID:
        message = "Name a topic by its name or by its id, not by both."
        _refuse(result, KafkaError(ErrorCode.INVALID_REQUEST, message))
    return result


def _refuse_denied(results: list[DeletableTopicResult], ctx: RequestContext) -> None:
    """A topic that was named by its id keeps its name from a principal that may not describe it."""
    names = [result.name for result in results if result.name is not None and not result.error_code]
    hidden = denied_topics(ctx, AclOperation.DESCRIBE, names)
    denied = denied_topics(ctx, AclOperation.DELETE, names)
    for result in results:
        if result.error_code or result.name is None:
            continue
        if result.name in hidden and result.topic_id != ZERO_UUID:
            result.name = None
            _refuse(result, denial(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif result.name in denied:
            _refuse(result, denial(ErrorCode.TOPIC_AUTHORIZATION_FAILED))


def _refuse(result: DeletableTopicResult, error: KafkaError | None) -> None:
    if error is not None:
        result.error_code, result.error_message = error.code, error.message or None
