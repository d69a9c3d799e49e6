"""ListGroups (key 16): the groups that this broker coordinates.

Versions 0-5. v4 asks by state, v5 by type; the names of both are compared without regard to case. Not done: nothing.
"""

from odradek.base.errors import KafkaError
from odradek.broker.api.authorization import NONE_DENIED, authorized_on_cluster, denied_names
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.broker.coordinator.groups.core.group_description import CLASSIC
from odradek.model.acls import AclOperation, ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


@handles(ApiKey.LIST_GROUPS, versions="0-5", may_block=False)
def list_groups(request: ListGroupsRequest, ctx: RequestContext) -> ListGroupsResponse:
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    try:
        groups = list(ctx.broker.groups.list_groups())
    except KafkaError as error:
        return ListGroupsResponse(error_code=error.code)
    sees_all = authorized_on_cluster(ctx, AclOperation.DESCRIBE, log_denied=False)
    hidden = (
        NONE_DENIED
        if sees_all
        else denied_names(
            ctx, AclOperation.DESCRIBE, ResourceType.GROUP, [group[0] for group in groups], log_denied=False
        )
    )
    return ListGroupsResponse(
        groups=[
            ListedGroup(group_id=id, protocol_type=protocol_type, group_state=state, group_type=CLASSIC)
            for id, protocol_type, state in groups
            if id not in hidden and (not states or state.lower() in states) and (not types or CLASSIC in types)
        ]
    )
