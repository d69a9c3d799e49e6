"""ListTransactions (key 66): the transactional ids that this broker coordinates.

Versions 0-1. Filters by state and producer id; v1 also by how long a transaction runs. Not done: nothing.
"""

from odradek.base.errors import KafkaError
from odradek.broker.api.authorization import denied_names
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.broker.coordinator.transactions.core.transaction import STATES_BY_LABEL
from odradek.model.acls import AclOperation, ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)


@handles(ApiKey.LIST_TRANSACTIONS, versions="0-1", may_block=False)
def list_transactions(request: ListTransactionsRequest, ctx: RequestContext) -> ListTransactionsResponse:
    try:
        found = ctx.broker.transactions.list_transactions()
    except KafkaError as error:
        return ListTransactionsResponse(error_code=error.code)
    names = [each.transactional_id for each in found]
    hidden = denied_names(ctx, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, names, log_denied=False)
    states = {STATES_BY_LABEL[label] for label in request.state_filters if label in STATES_BY_LABEL}
    ids, began_before_ms = set(request.producer_id_filters), ctx.broker.clock.now_ms() - request.duration_filter
    return ListTransactionsResponse(
        unknown_state_filters=[label for label in dict.fromkeys(request.state_filters) if label not in STATES_BY_LABEL],
        transaction_states=[
            TransactionState(
                transactional_id=each.transactional_id,
                producer_id=each.producer_id,
                transaction_state=each.state.label,
            )
            for each in found
            if each.transactional_id not in hidden
            and (not request.state_filters or each.state in states)
            and (not ids or each.producer_id in ids)
            and (request.duration_filter < 0 or each.start_ms < began_before_ms)
        ],
    )
