"""ListTransactions (key 66): the transactions that a broker coordinates.

v1 only those older than a duration.
"""

from odradek.protocol.schema import Request, Response, Struct, array, int16, int32, int64, string


class ListTransactionsRequest(Request, key=66, versions="0-1", flexible="0+"):
    state_filters: list[str] = array(string)  # empty: all
    producer_id_filters: list[int] = array(int64)  # empty: all
    duration_filter: int = int64("1+", default=-1)  # -1: all


class TransactionState(Struct):
    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


class ListTransactionsResponse(Response, key=66, versions="0-1", flexible="0+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    error_code: int = int16()
    unknown_state_filters: list[str] = array(string)  # those that name no state
    transaction_states: list[TransactionState] = array(TransactionState)
