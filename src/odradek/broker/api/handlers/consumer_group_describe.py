"""ConsumerGroupDescribe (key 69): groups of the newer protocol, which Kafka 3.9 doesn't have in ZooKeeper mode.

Versions 0-0. Refused with UNSUPPORTED_VERSION for each group, as Kafka does: Kafka's admin client asks with
DescribeGroups then. Not done: nothing.
"""

from odradek.base.errors import ErrorCode
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


@handles(ApiKey.CONSUMER_GROUP_DESCRIBE, versions="0-0", may_block=False)
def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, ctx: RequestContext
) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        groups=[
            DescribedGroup(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
            for group_id in request.group_ids
        ]
    )
