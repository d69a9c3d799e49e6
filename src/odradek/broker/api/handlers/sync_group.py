"""SyncGroup (key 14): the leader hands in the assignment, every member receives its part.

Versions 0-5. v3 static members, v5 the protocol to compare, without which nothing is compared. Not done: nothing.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.broker.coordinator.groups.core.group_requests import SyncAnswer, Syncing
from odradek.model.acls import AclOperation, ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_FIRST_VERSION_WITH_PROTOCOL = 5


@handles(ApiKey.SYNC_GROUP, versions="0-5", may_block=False)
def sync_group(request: SyncGroupRequest, ctx: RequestContext) -> SyncGroupResponse | Outcome:
    if not authorized(ctx, AclOperation.READ, ResourceType.GROUP, request.group_id):
        return SyncGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    names_protocol = request.protocol_type is not None and request.protocol_name is not None
    if ctx.version >= _FIRST_VERSION_WITH_PROTOCOL and not names_protocol:
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    syncing = Syncing(
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        {each.member_id: each.assignment for each in request.assignments},
        request.protocol_type,
        request.protocol_name,
    )
    try:
        ctx.broker.groups.sync(request.group_id, syncing, ctx.reply_with(_response))
    except KafkaError as error:
        return SyncGroupResponse(error_code=error.code)
    return LATER


def _response(answer: SyncAnswer) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=answer.error,
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol_name,
        assignment=answer.assignment,
    )
