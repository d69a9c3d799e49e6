"""DeleteGroups (key 42): remove empty groups with their offsets.

Versions 0-2. A group that has members gets NON_EMPTY_GROUP. Not done: nothing.
"""

from odradek.api.context import RequestContext
from odradek.api.registry import handles
from odradek.base.errors import ErrorCode, KafkaError
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


@handles(ApiKey.DELETE_GROUPS, versions="0-2", may_block=False)
def delete_groups(request: DeleteGroupsRequest, ctx: RequestContext) -> DeleteGroupsResponse:
    group_ids = dict.fromkeys(request.groups_names)
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id=group_id, error_code=_delete(group_id, ctx)) for group_id in group_ids]
    )


def _delete(group_id: str, ctx: RequestContext) -> ErrorCode:
    try:
        ctx.broker.groups.delete(group_id)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
