"""InitProducerId (key 22): a producer gets the id and epoch under which its batches are counted.

Versions 0-5. With a transactional id, the coordinator of that id answers: an open transaction is aborted first
(CONCURRENT_TRANSACTIONS until that is done), and the epoch is raised, which fences a former producer. v3 lets a
producer keep its id and raise its epoch. v4 has PRODUCER_FENCED. Not done: nothing.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized, authorized_for_some, authorized_on_cluster
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.broker.api.transactional_errors import as_known_to
from odradek.broker.coordinator.transactions.core.decisions import Producer
from odradek.model.acls import AclOperation, ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


@handles(ApiKey.INIT_PRODUCER_ID, versions="0-5", may_block=True)
def init_producer_id(request: InitProducerIdRequest, ctx: RequestContext) -> InitProducerIdResponse | Outcome:
    if not _is_authorized(request, ctx):
        is_transactional = request.transactional_id is not None
        return _refusal(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            if is_transactional
            else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        )
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return _refusal(ErrorCode.INVALID_REQUEST)

    def answer(error: ErrorCode, producer: Producer) -> InitProducerIdResponse:
        if error:
            return _refusal(as_known_to(error, ctx.version, fenced_since=4))
        return InitProducerIdResponse(producer_id=producer.id, producer_epoch=producer.epoch)

    try:
        if request.transactional_id is None:
            return InitProducerIdResponse(producer_id=ctx.broker.producer_ids.next(), producer_epoch=0)
        expected = None if request.producer_id == -1 else Producer(request.producer_id, request.producer_epoch)
        ctx.broker.transactions.init_producer_id(
            request.transactional_id, request.transaction_timeout_ms, expected, ctx.reply_with(answer)
        )
    except KafkaError as error:
        return _refusal(error.code)
    return LATER


def _is_authorized(request: InitProducerIdRequest, ctx: RequestContext) -> bool:
    """An idempotent producer needs the right of the cluster, or that to write to any topic."""
    if request.transactional_id is not None:
        return authorized(ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    return authorized_on_cluster(ctx, AclOperation.IDEMPOTENT_WRITE, log_denied=False) or authorized_for_some(
        ctx, AclOperation.WRITE, ResourceType.TOPIC
    )


def _refusal(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
