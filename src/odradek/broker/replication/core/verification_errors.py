"""Answers of a transaction coordinator to a verification, as a producer understands them. Pure.

Errors that will pass become NOT_ENOUGH_REPLICAS, which every client retries with the same batch; the coordinator's own
errors mean something else in an answer to Produce. TRANSACTION_ABORTABLE is known to clients from Produce v11 on,
CONCURRENT_TRANSACTIONS from v12 on, where a transaction begins with the Produce and the one before may still be ending.
"""

from typing import Final

from odradek.base.errors import ErrorCode, KafkaError

FIRST_WITH_ABORTABLE: Final = 11
FIRST_WITH_CONCURRENT: Final = 12

_PASSING: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.OPERATION_NOT_ATTEMPTED,  # another partition of the request is not known there yet
    }
)


def produce_error(code: ErrorCode, api_version: int) -> KafkaError | None:
    """Return the reason why the batch is not appended; None if it may be."""
    if code is ErrorCode.NONE:
        return None
    if code in _PASSING and not (code is ErrorCode.CONCURRENT_TRANSACTIONS and api_version >= FIRST_WITH_CONCURRENT):
        why = f"Unable to verify the partition has been added to the transaction. Underlying error: {code.name}"
        return KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, why)
    if code is ErrorCode.PRODUCER_FENCED:
        return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)
    if code is ErrorCode.TRANSACTION_ABORTABLE and api_version < FIRST_WITH_ABORTABLE:
        return KafkaError(ErrorCode.INVALID_TXN_STATE)
    return KafkaError(code)
