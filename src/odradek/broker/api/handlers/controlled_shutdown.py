"""ControlledShutdown (key 7): a broker asks the controller to move its leaders away before it stops.

Versions 0-3. v2 adds the broker's epoch, so that a request from before its restart moves nothing. Not done: nothing.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized_on_cluster
from odradek.broker.api.context import RequestContext
from odradek.broker.api.controller_requests import ask_controller
from odradek.broker.api.registry import Outcome, handles
from odradek.broker.controller.core.events import ControlledShutdownAsked
from odradek.model.acls import AclOperation
from odradek.model.topology import TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)


@handles(ApiKey.CONTROLLED_SHUTDOWN, versions="0-3", may_block=False)
def controlled_shutdown(
    request: ControlledShutdownRequest, ctx: RequestContext
) -> ControlledShutdownResponse | Outcome:
    if not authorized_on_cluster(ctx, AclOperation.CLUSTER_ACTION):
        return ControlledShutdownResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return ask_controller(
        ctx, lambda answer: ControlledShutdownAsked(request.broker_id, request.broker_epoch, answer), _response
    )


def _response(remaining: set[TopicPartition] | KafkaError) -> ControlledShutdownResponse:
    if isinstance(remaining, KafkaError):
        return ControlledShutdownResponse(error_code=remaining.code)
    return ControlledShutdownResponse(
        remaining_partitions=[
            RemainingPartition(topic_name=tp.topic, partition_index=tp.partition) for tp in sorted(remaining)
        ]
    )
