"""AllocateProducerIds (key 67): a broker asks the controller for a block of producer ids.

Version 0. Our own brokers take theirs from ZooKeeper; Apache Kafka's ask. A broker that isn't registered, or was
registered anew since, gets none. Not done: nothing.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized_on_cluster
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.model.acls import AclOperation
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


@handles(ApiKey.ALLOCATE_PRODUCER_IDS, versions="0-0", may_block=True)
def allocate_producer_ids(request: AllocateProducerIdsRequest, ctx: RequestContext) -> AllocateProducerIdsResponse:
    if not authorized_on_cluster(ctx, AclOperation.CLUSTER_ACTION):
        return AllocateProducerIdsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if not ctx.broker.controller.is_active:
        return AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    try:
        block = ctx.broker.producer_ids.allocate_for(request.broker_id, request.broker_epoch)
    except KafkaError as error:
        return AllocateProducerIdsResponse(error_code=error.code)
    return AllocateProducerIdsResponse(producer_id_start=block.start, producer_id_len=len(block))
