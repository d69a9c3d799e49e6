"""DeleteGroups (key 42): remove empty groups with their offsets.

Versions 0-2. A group that has members gets NON_EMPTY_GROUP. Not done: nothing.
"""

from functools import partial

from odradek.base.errors import ErrorCode
from odradek.broker.api.authorization import denied_names
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.model.acls import AclOperation, ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


@handles(ApiKey.DELETE_GROUPS, versions="0-2", may_block=False)
def delete_groups(request: DeleteGroupsRequest, ctx: RequestContext) -> Outcome:
    denied = denied_names(ctx, AclOperation.DELETE, ResourceType.GROUP, request.groups_names)
    allowed = [name for name in request.groups_names if name not in denied]
    ctx.broker.groups.offsets.delete_groups(allowed, ctx.reply_with(partial(_response, denied)))
    return LATER


def _response(denied: frozenset[str], errors: dict[str, ErrorCode]) -> DeleteGroupsResponse:
    errors = errors | dict.fromkeys(denied, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id=group_id, error_code=error) for group_id, error in errors.items()]
    )
