"""CreatePartitions (key 37): more partitions for an existing topic. There is no way back to fewer.

Versions 0-3. v3 is refused with THROTTLING_QUOTA_EXCEEDED where the client makes too many. Not done: nothing.
"""

from collections import Counter

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.admin.new_topics import MorePartitions
from odradek.broker.admin.topic_admin import Refusals
from odradek.broker.api.authorization import denied_topics
from odradek.broker.api.context import RequestContext
from odradek.broker.api.mutation_permits import permit_for
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.model.acls import AclOperation
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)


@handles(ApiKey.CREATE_PARTITIONS, versions="0-3", may_block=True)
def create_partitions(request: CreatePartitionsRequest, ctx: RequestContext) -> Outcome:
    times_named = Counter(topic.name for topic in request.topics)
    twice = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
    refused: Refusals = {name: twice for name, times in times_named.items() if times > 1}
    unique = [topic.name for topic in request.topics if topic.name not in refused]
    denied = denied_topics(ctx, AclOperation.ALTER, unique)
    refused |= dict.fromkeys(
        denied, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The topic authorization is failed.")
    )
    asked = [
        MorePartitions(
            topic.name,
            topic.count,
            None if topic.assignments is None else [tuple(a.broker_ids) for a in topic.assignments],
        )
        for topic in request.topics
        if topic.name not in refused
    ]

    def response(refusals: Refusals) -> CreatePartitionsResponse:
        return _response(refusals | refused)

    ctx.broker.topics.add_partitions(
        asked,
        validate_only=request.validate_only,
        timeout_ms=request.timeout_ms,
        permit=permit_for(ctx, strict_since=3),
        done=ctx.reply_with(response),
    )
    return LATER


def _response(refusals: Refusals) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(
                name=name,
                error_code=error.code if error else ErrorCode.NONE,
                error_message=(error.message or None) if error else None,
            )
            for name, error in refusals.items()
        ]
    )
