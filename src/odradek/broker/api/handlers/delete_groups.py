"""DeleteGroups (key 42): remove empty groups with their offsets.

Versions 0-2. A group that has members gets NON_EMPTY_GROUP. Not done: nothing.
"""

from odradek.base.errors import ErrorCode
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


@handles(ApiKey.DELETE_GROUPS, versions="0-2", may_block=False)
def delete_groups(request: DeleteGroupsRequest, ctx: RequestContext) -> Outcome:
    ctx.broker.groups.offsets.delete_groups(request.groups_names, ctx.reply_with(_response))
    return LATER


def _response(errors: dict[str, ErrorCode]) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id=group_id, error_code=error) for group_id, error in errors.items()]
    )
