"""InitProducerId (key 22): a producer gets the number under which its batches are counted.

Versions 0-5. v3 lets a producer keep its id and raise its epoch. Not done: transactional ids, which get
UNSUPPORTED_VERSION until the transaction coordinator is here.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized, authorized_for_some, authorized_on_cluster
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.model.acls import AclOperation, ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


@handles(ApiKey.INIT_PRODUCER_ID, versions="0-5", may_block=True)
def init_producer_id(request: InitProducerIdRequest, ctx: RequestContext) -> InitProducerIdResponse:
    if not _is_authorized(request, ctx):
        is_transactional = request.transactional_id is not None
        return _refusal(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            if is_transactional
            else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        )
    if request.transactional_id is not None:
        return _refusal(ErrorCode.UNSUPPORTED_VERSION)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return _refusal(ErrorCode.INVALID_REQUEST)
    try:
        return InitProducerIdResponse(producer_id=ctx.broker.producer_ids.next(), producer_epoch=0)
    except KafkaError as error:
        return _refusal(error.code)


def _is_authorized(request: InitProducerIdRequest, ctx: RequestContext) -> bool:
    """An idempotent producer needs the right of the cluster, or that to write to any topic."""
    if request.transactional_id is not None:
        return authorized(ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    return authorized_on_cluster(ctx, AclOperation.IDEMPOTENT_WRITE, log_denied=False) or authorized_for_some(
        ctx, AclOperation.WRITE, ResourceType.TOPIC
    )


def _refusal(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
