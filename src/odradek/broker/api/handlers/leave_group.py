"""LeaveGroup (key 13): members leave at once instead of by timeout.

Versions 0-5. v0-2 name one member, whose error is the answer's; v3 names many, also by instance id alone; v5 adds a
reason, which the flight recorder keeps. Not done: nothing.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.model.acls import AclOperation, ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse


@handles(ApiKey.LEAVE_GROUP, versions="0-5", may_block=False)
def leave_group(request: LeaveGroupRequest, ctx: RequestContext) -> LeaveGroupResponse:
    if not authorized(ctx, AclOperation.READ, ResourceType.GROUP, request.group_id):
        return LeaveGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    leave = ctx.broker.groups.leave
    try:
        if ctx.version < 3:
            return LeaveGroupResponse(error_code=leave(request.group_id, request.member_id, None))
        if not request.members:
            leave(request.group_id, "", None)  # raises what is wrong with the group
        return LeaveGroupResponse(
            members=[
                MemberResponse(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    error_code=leave(request.group_id, member.member_id, member.group_instance_id, member.reason),
                )
                for member in request.members
            ]
        )
    except KafkaError as error:
        return LeaveGroupResponse(error_code=error.code)
