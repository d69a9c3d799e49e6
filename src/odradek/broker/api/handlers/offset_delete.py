"""OffsetDelete (key 47): forget a group's positions in some partitions.

Version 0. Topics that members of the group read keep theirs. Not done: nothing.
"""

from functools import partial

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized, denied_topics
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.model.acls import AclOperation, ResourceType
from odradek.model.topology import TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


@handles(ApiKey.OFFSET_DELETE, versions="0-0", may_block=False)
def offset_delete(request: OffsetDeleteRequest, ctx: RequestContext) -> OffsetDeleteResponse | Outcome:
    if not authorized(ctx, AclOperation.DELETE, ResourceType.GROUP, request.group_id):
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    denied = denied_topics(ctx, AclOperation.READ, [topic.name for topic in request.topics])
    image = ctx.broker.metadata.image
    asked = dict.fromkeys(
        TopicPartition(topic.name, each.partition_index) for topic in request.topics for each in topic.partitions
    )
    refused = {tp: ErrorCode.TOPIC_AUTHORIZATION_FAILED for tp in asked if tp.topic in denied}
    try:
        ctx.broker.groups.offsets.delete(
            request.group_id,
            [tp for tp in asked if tp not in refused and image.partition(tp) is not None],
            ctx.reply_with(partial(_response, request, refused)),
        )
    except KafkaError as error:
        return OffsetDeleteResponse(error_code=error.code)
    return LATER


def _response(
    request: OffsetDeleteRequest, refused: dict[TopicPartition, ErrorCode], errors: dict[TopicPartition, ErrorCode]
) -> OffsetDeleteResponse:
    errors = errors | refused
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(
                        partition_index=each.partition_index,
                        error_code=errors.get(TopicPartition(topic.name, each.partition_index), unknown),
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
