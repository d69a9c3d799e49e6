"""Heartbeat (key 12): a member says it is alive and learns whether its group rebalances.

Versions 0-4. v3 adds static members. Not done: nothing.
"""

from odradek.base.errors import ErrorCode
from odradek.broker.api.authorization import authorized
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.model.acls import AclOperation, ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


@handles(ApiKey.HEARTBEAT, versions="0-4", may_block=False)
def heartbeat(request: HeartbeatRequest, ctx: RequestContext) -> HeartbeatResponse:
    if not authorized(ctx, AclOperation.READ, ResourceType.GROUP, request.group_id):
        return HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    error = ctx.broker.groups.heartbeat(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    return HeartbeatResponse(error_code=error)
