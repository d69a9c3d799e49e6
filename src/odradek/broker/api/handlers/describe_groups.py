"""DescribeGroups (key 15): state, members and assignments of groups.

Versions 0-5. v3 may ask what the client is allowed, v4 tells static members. A group that isn't there is Dead. Not
done: nothing; who may do what comes with authorization.
"""

from odradek.base.errors import KafkaError
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.model.operations import ALL_ON_GROUP, NOT_ASKED
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


@handles(ApiKey.DESCRIBE_GROUPS, versions="0-5", may_block=False)
def describe_groups(request: DescribeGroupsRequest, ctx: RequestContext) -> DescribeGroupsResponse:
    operations = ALL_ON_GROUP if request.include_authorized_operations else NOT_ASKED
    return DescribeGroupsResponse(groups=[_describe(group_id, operations, ctx) for group_id in request.groups])


def _describe(group_id: str, operations: int, ctx: RequestContext) -> DescribedGroup:
    try:
        group = ctx.broker.groups.describe(group_id)
    except KafkaError as error:
        return DescribedGroup(error_code=error.code, group_id=group_id)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol,
        authorized_operations=operations,
        members=[
            DescribedGroupMember(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.subscription,
                member_assignment=member.assignment,
            )
            for member in group.members
        ],
    )
