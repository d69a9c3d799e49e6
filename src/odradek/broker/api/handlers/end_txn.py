"""EndTxn (key 26): commit or abort a transaction.

Versions 0-5. The request is answered when the decision is in the log of __transaction_state; the markers are written
later. v2 has PRODUCER_FENCED. v5 raises the epoch with each end (KIP-890, part 2), and returns the next producer id and
epoch: a late request has the epoch of its own transaction, and can't end a later one. Not done: nothing.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import LATER, Outcome, handles
from odradek.broker.api.transactional_errors import as_known_to
from odradek.broker.coordinator.transactions.core.decisions import Producer
from odradek.broker.coordinator.transactions.core.transaction import CLASSIC, EPOCH_BUMP_VERSION, is_exhausted
from odradek.broker.coordinator.transactions.transaction_coordinator import NO_PRODUCER
from odradek.model.acls import AclOperation, ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

FIRST_WITH_BUMP = 5


def _needs_producer_id(request: EndTxnRequest) -> bool:
    """The end of a producer's last epoch gives it a new id, which may have to come from ZooKeeper."""
    return is_exhausted(request.producer_epoch)


@handles(ApiKey.END_TXN, versions="0-5", may_block=_needs_producer_id)
def end_txn(request: EndTxnRequest, ctx: RequestContext) -> EndTxnResponse | Outcome:
    def answer(error: ErrorCode, producer: Producer) -> EndTxnResponse:
        return EndTxnResponse(
            error_code=as_known_to(error, ctx.version, fenced_since=2),
            producer_id=producer.id,
            producer_epoch=producer.epoch,
        )

    producer = Producer(request.producer_id, request.producer_epoch)
    if not authorized(ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return answer(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, NO_PRODUCER)
    if ctx.connection.peer_closed:
        # The request was unread in the socket of a frozen broker. The producer has repeated it since. Before v5 its
        # next transaction has the same epoch, and this request would end it.
        return answer(ErrorCode.NETWORK_EXCEPTION, NO_PRODUCER)
    try:
        ctx.broker.transactions.end(
            request.transactional_id,
            producer,
            ctx.reply_with(answer),
            commit=request.committed,
            client_version=EPOCH_BUMP_VERSION if ctx.version >= FIRST_WITH_BUMP else CLASSIC,
        )
    except KafkaError as error:
        return answer(error.code, NO_PRODUCER)
    return LATER
