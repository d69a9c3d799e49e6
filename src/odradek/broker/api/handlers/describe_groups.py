"""DescribeGroups (key 15): state, members and assignments of groups.

Versions 0-5. v3 may ask what the client is allowed, v4 tells static members. A group that isn't there is Dead. Differs
from Kafka: a group that is named very often is described at most 10 times. Not done: nothing.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import NOT_ASKED, authorized_operations, denied_names
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.broker.api.repetitions import Repetitions
from odradek.model.acls import AclOperation, ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


@handles(ApiKey.DESCRIBE_GROUPS, versions="0-5", may_block=False)
def describe_groups(request: DescribeGroupsRequest, ctx: RequestContext) -> DescribeGroupsResponse:
    repetitions = Repetitions()
    asked = [group_id for group_id in request.groups if repetitions.may_answer(group_id)]
    denied = denied_names(ctx, AclOperation.DESCRIBE, ResourceType.GROUP, asked)
    return DescribeGroupsResponse(groups=[_describe(group_id, request, denied, ctx) for group_id in asked])


def _describe(
    group_id: str, request: DescribeGroupsRequest, denied: frozenset[str], ctx: RequestContext
) -> DescribedGroup:
    if group_id in denied:
        return DescribedGroup(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=group_id)
    try:
        group = ctx.broker.groups.describe(group_id)
    except KafkaError as error:
        return DescribedGroup(error_code=error.code, group_id=group_id)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol,
        authorized_operations=(
            authorized_operations(ctx, ResourceType.GROUP, group_id)
            if request.include_authorized_operations
            else NOT_ASKED
        ),
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
