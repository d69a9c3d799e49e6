"""JoinGroup (key 11): enter a group, or its next generation; held until all members are in.

Versions 0-9. v0 has one timeout for session and rebalance; from v4 on a new member is first given an id and must come
back with it; v5 static members; v8 a reason, which the flight recorder keeps; v9 tells a returning leader not to
assign. Not done: nothing.
"""

from functools import partial
from uuid import uuid4

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.broker.coordinator.groups.core.group_requests import JoinAnswer, Joining
from odradek.model.acls import AclOperation, ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from odradek.protocol.primitives import STRING_LENGTH_MAX

_FIRST_VERSION_WITH_KNOWN_IDS = 4
_FIRST_VERSION_WITH_NULL_PROTOCOL = 7
_FIRST_VERSION_THAT_SKIPS_ASSIGNMENT = 9


@handles(ApiKey.JOIN_GROUP, versions="0-9", may_block=False)
def join_group(request: JoinGroupRequest, ctx: RequestContext) -> JoinGroupResponse | Outcome:
    if not authorized(ctx, AclOperation.READ, ResourceType.GROUP, request.group_id):
        return _response(ctx.version, JoinAnswer(ErrorCode.GROUP_AUTHORIZATION_FAILED, ""))
    joining = _joining(request, ctx)
    if not request.member_id and len(joining.fresh_id.encode()) > STRING_LENGTH_MAX:
        # The id would fit into no answer and no record of the group.
        return _response(ctx.version, JoinAnswer(ErrorCode.UNKNOWN_SERVER_ERROR, ""))
    try:
        ctx.broker.groups.join(request.group_id, joining, ctx.reply_with(partial(_response, ctx.version)))
    except KafkaError as error:
        return _response(ctx.version, JoinAnswer(error.code, request.member_id))
    return LATER


def _joining(request: JoinGroupRequest, ctx: RequestContext) -> Joining:
    client_id = ctx.header.client_id or ""
    instance_id = request.group_instance_id
    return Joining(
        member_id=request.member_id,
        fresh_id=f"{client_id if instance_id is None else instance_id}-{uuid4()}",
        instance_id=instance_id,
        client_id=client_id,
        client_host=f"/{ctx.connection.client_host}",
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms if ctx.version >= 1 else request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
        needs_known_id=ctx.version >= _FIRST_VERSION_WITH_KNOWN_IDS and instance_id is None,
        may_skip_assignment=ctx.version >= _FIRST_VERSION_THAT_SKIPS_ASSIGNMENT,
        reason=request.reason,
    )


def _response(version: int, answer: JoinAnswer) -> JoinGroupResponse:
    absent = None if version >= _FIRST_VERSION_WITH_NULL_PROTOCOL else ""
    return JoinGroupResponse(
        error_code=answer.error,
        generation_id=answer.generation,
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol_name or absent,
        leader=answer.leader,
        skip_assignment=answer.skip_assignment,
        member_id=answer.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.subscription
            )
            for member in answer.members
        ],
    )
