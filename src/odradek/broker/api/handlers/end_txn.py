"""EndTxn (key 26): commit or abort a transaction.

Versions 0-4. Answered when the decision is in the log of __transaction_state; the markers follow. v2 has
PRODUCER_FENCED. Not done: nothing.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.broker.api.transactional_errors import as_known_to
from odradek.broker.coordinator.transactions.core.decisions import Producer
from odradek.model.acls import AclOperation, ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse


@handles(ApiKey.END_TXN, versions="0-4", may_block=False)
def end_txn(request: EndTxnRequest, ctx: RequestContext) -> EndTxnResponse | Outcome:
    def answer(error: ErrorCode, producer: Producer) -> EndTxnResponse:
        return EndTxnResponse(error_code=as_known_to(error, ctx.version, fenced_since=2))

    producer = Producer(request.producer_id, request.producer_epoch)
    if not authorized(ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return answer(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, producer)
    try:
        ctx.broker.transactions.end(
            request.transactional_id, producer, ctx.reply_with(answer), commit=request.committed
        )
    except KafkaError as error:
        return answer(error.code, producer)
    return LATER
