"""ConsumerGroupHeartbeat (key 68): the newer group protocol, which Kafka 3.9 doesn't have in ZooKeeper mode.

Versions 0-0. It is advertised and refused with UNSUPPORTED_VERSION, as Kafka does: clients fall back to the classic
protocol. Not done: nothing.
"""

from odradek.base.errors import ErrorCode
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


@handles(ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0-0", may_block=False)
def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, ctx: RequestContext
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, assignment=None)
