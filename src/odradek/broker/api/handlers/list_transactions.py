"""ListTransactions (key 66): the transactions that this broker coordinates, which are none.

Versions 0-1. v1 can ask for old ones only. Not done: transactions.
"""

from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

STATES = frozenset(
    {
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    }
)


@handles(ApiKey.LIST_TRANSACTIONS, versions="0-1", may_block=False)
def list_transactions(request: ListTransactionsRequest, ctx: RequestContext) -> ListTransactionsResponse:
    return ListTransactionsResponse(unknown_state_filters=[s for s in request.state_filters if s not in STATES])
