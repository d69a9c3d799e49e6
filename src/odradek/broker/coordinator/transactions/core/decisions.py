"""Answers of the transaction coordinator to its clients' requests: an error, nothing to do, or a state change to write.

`pending`: a move of the transactional id is on its way into the log, or its markers are being written. The order of the
checks is Kafka's, because a client acts on the first error. A decision that needs a new producer id, which comes from
ZooKeeper, says so and is made again with one.
"""

from collections.abc import Collection
from enum import Enum
from typing import Final, TypeAlias

from odradek.base.errors import ErrorCode
from odradek.base.value_classes import dataclass
from odradek.broker.coordinator.transactions.core.transaction import (
    CLASSIC,
    EPOCH_BUMP_VERSION,
    EPOCH_MAX,
    PREPARED,
    Transaction,
    TransactionState,
    is_exhausted,
)
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP

_S = TransactionState
_NO_PARTITIONS: Final[frozenset[TopicPartition]] = frozenset()


@dataclass(frozen=True, slots=True)
class Refused:
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class Move:
    """The next value of the transaction; to be written, then taken over."""

    to: Transaction


class Unwritten(Enum):
    DONE = "nothing has to change"
    NEEDS_PRODUCER_ID = "make the decision again with a new producer id"


DONE, NEEDS_PRODUCER_ID = Unwritten.DONE, Unwritten.NEEDS_PRODUCER_ID
Decision: TypeAlias = Refused | Move | Unwritten


@dataclass(frozen=True, slots=True)
class Producer:
    id: int
    epoch: int


def init_producer_id(
    transaction: Transaction,
    expected: Producer | None,
    timeout_ms: int,
    now_ms: int,
    *,
    pending: bool,
    new_producer_id: int | None = None,
) -> Decision:
    """`expected`: the id and epoch of a producer that continues. An open transaction has to be aborted first: the
    result is that of `fence`, and the producer has to try again.
    """
    if pending:
        return Refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    if expected is not None and not _may_go_on(transaction, expected):
        return Refused(ErrorCode.PRODUCER_FENCED)
    if transaction.state in PREPARED:
        return Refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    if transaction.state is _S.ONGOING:
        return Move(fence(transaction, now_ms))
    if transaction.is_exhausted and (expected is None or expected.epoch == transaction.producer_epoch):
        if new_producer_id is None:
            return NEEDS_PRODUCER_ID
        last_epoch = NO_PRODUCER_EPOCH if expected is None else transaction.producer_epoch
        return Move(_fresh(transaction, new_producer_id, 0, last_epoch, timeout_ms, now_ms))
    if expected is not None and expected.epoch != transaction.producer_epoch != NO_PRODUCER_EPOCH:
        if expected.epoch != transaction.last_producer_epoch:
            return Refused(ErrorCode.PRODUCER_FENCED)
        epoch, last_epoch = transaction.producer_epoch, transaction.last_producer_epoch  # its answer was lost
    else:
        epoch = transaction.producer_epoch + 1
        last_epoch = NO_PRODUCER_EPOCH if expected is None else transaction.producer_epoch
    return Move(_fresh(transaction, transaction.producer_id, epoch, last_epoch, timeout_ms, now_ms))


def _may_go_on(transaction: Transaction, expected: Producer) -> bool:
    """A producer of the present id; of the next one, before the markers are written; or of the one before, if it had
    used up that one's epochs and lost the answer."""
    return (
        transaction.producer_epoch == NO_PRODUCER_EPOCH
        or expected.id == transaction.producer_id
        or _is_next(transaction, expected)
        or (expected.id == transaction.previous_producer_id and is_exhausted(expected.epoch))
    )


def _fresh(
    transaction: Transaction, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int
) -> Transaction:
    return transaction.move_to(
        _S.EMPTY,
        producer_id=producer_id,
        previous_producer_id=(
            transaction.previous_producer_id if producer_id == transaction.producer_id else transaction.producer_id
        ),
        next_producer_id=NO_PRODUCER_ID,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        timeout_ms=timeout_ms,
        partitions=_NO_PARTITIONS,
        start_ms=NO_TIMESTAMP,
        last_update_ms=now_ms,
        client_version=CLASSIC,
    )


def fence(transaction: Transaction, now_ms: int) -> Transaction:
    """Abort an open transaction with an epoch that its producer doesn't have: no write of that one is taken any more.

    One bump and no more, and none above the largest epoch: from there on InitProducerId gives a new id.
    """
    return transaction.move_to(
        _S.PREPARE_ABORT,
        producer_epoch=min(transaction.producer_epoch + 1, EPOCH_MAX),
        last_producer_epoch=NO_PRODUCER_EPOCH,
        last_update_ms=now_ms,
        client_version=CLASSIC,  # the fenced producer must not find its EndTxn taken as a retry
    )


def add_partitions(
    transaction: Transaction,
    producer: Producer,
    partitions: Collection[TopicPartition],
    client_version: int,
    now_ms: int,
    *,
    pending: bool,
) -> Decision:
    if error := _wrong_producer(transaction, producer):
        return Refused(error)
    if pending or transaction.state in PREPARED:
        return Refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    if transaction.state is _S.ONGOING and transaction.partitions.issuperset(partitions):
        return DONE
    is_open = transaction.state is _S.ONGOING
    return Move(
        transaction.move_to(
            _S.ONGOING,
            partitions=transaction.partitions.union(partitions),
            start_ms=transaction.start_ms if is_open else now_ms,
            last_update_ms=now_ms,
            # within a transaction the version stays: a feature that is enabled meanwhile counts from the next one on
            client_version=transaction.client_version if is_open else client_version,
        )
    )


def verify(
    transaction: Transaction, producer: Producer, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """Check that partitions are part of the open transaction, as their leaders ask before the first append.

    A move that is pending isn't asked for: the leader checks again when it appends.
    """
    error = _wrong_producer(transaction, producer)
    if not error and transaction.state in PREPARED:
        error = ErrorCode.CONCURRENT_TRANSACTIONS
    if error:
        return dict.fromkeys(partitions, error)
    return {
        tp: ErrorCode.NONE if tp in transaction.partitions else ErrorCode.TRANSACTION_ABORTABLE for tp in partitions
    }


def end(
    transaction: Transaction,
    producer: Producer,
    client_version: int,
    now_ms: int,
    *,
    commit: bool,
    pending: bool,
    new_producer_id: int | None = None,
) -> Decision:
    """EndTxn of a client. In version 2 the markers and the next transaction have the next epoch, so that a request that
    comes late can't end a later transaction; a request that is repeated is known by the epoch before."""
    repeated_after_overflow = (
        transaction.bumps_epochs
        and producer.id == transaction.previous_producer_id
        and producer.epoch == EPOCH_MAX - 1
        and transaction.producer_epoch == 0
    )
    if _is_next(transaction, producer):
        return Refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    if producer.id != transaction.producer_id and not repeated_after_overflow:
        return Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    is_repeated = repeated_after_overflow or (
        transaction.bumps_epochs
        and transaction.state is not _S.ONGOING
        and producer.epoch + 1 == transaction.producer_epoch
    )
    if not is_repeated and producer.epoch != transaction.producer_epoch:
        return Refused(ErrorCode.PRODUCER_FENCED)
    if pending:
        return Refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    if transaction.state is _S.ONGOING:
        return _prepare(transaction, client_version, now_ms, commit=commit, new_producer_id=new_producer_id)
    return _end_without_transaction(
        transaction, client_version, now_ms, commit=commit, is_repeated=is_repeated, new_producer_id=new_producer_id
    )


def _end_without_transaction(
    transaction: Transaction,
    client_version: int,
    now_ms: int,
    *,
    commit: bool,
    is_repeated: bool,
    new_producer_id: int | None,
) -> Decision:
    if transaction.state in PREPARED:
        same = commit == (transaction.state is _S.PREPARE_COMMIT)
        return Refused(ErrorCode.CONCURRENT_TRANSACTIONS if same else ErrorCode.INVALID_TXN_STATE)
    if is_repeated or not transaction.bumps_epochs:
        ended_so = transaction.state is (_S.COMPLETE_COMMIT if commit else _S.COMPLETE_ABORT)
        if ended_so and (is_repeated or client_version < EPOCH_BUMP_VERSION):
            return DONE
        if is_repeated:
            return Refused(ErrorCode.INVALID_TXN_STATE)
    if client_version >= EPOCH_BUMP_VERSION and not commit:
        # its producer doesn't know whether any of its writes became part of a transaction
        return _prepare(transaction, client_version, now_ms, commit=False, new_producer_id=new_producer_id)
    return Refused(ErrorCode.INVALID_TXN_STATE)


def _prepare(
    transaction: Transaction, client_version: int, now_ms: int, *, commit: bool, new_producer_id: int | None
) -> Decision:
    bump = client_version >= EPOCH_BUMP_VERSION
    next_producer_id = NO_PRODUCER_ID
    if bump and transaction.is_exhausted:
        if new_producer_id is None:
            return NEEDS_PRODUCER_ID
        next_producer_id = new_producer_id
    epoch = min(transaction.producer_epoch + 1, EPOCH_MAX) if bump else transaction.producer_epoch
    return Move(
        transaction.move_to(
            _S.PREPARE_COMMIT if commit else _S.PREPARE_ABORT,
            producer_epoch=epoch,
            last_producer_epoch=transaction.producer_epoch if bump else transaction.last_producer_epoch,
            next_producer_id=next_producer_id,
            partitions=transaction.partitions if transaction.state is _S.ONGOING else _NO_PARTITIONS,
            last_update_ms=now_ms,
            client_version=client_version,
        )
    )


def complete(transaction: Transaction, now_ms: int) -> Transaction:
    """Complete a transaction whose markers are all written. A producer without unused epochs continues with a new
    id."""
    state = _S.COMPLETE_COMMIT if transaction.state is _S.PREPARE_COMMIT else _S.COMPLETE_ABORT
    if transaction.next_producer_id == NO_PRODUCER_ID:
        return transaction.move_to(state, partitions=_NO_PARTITIONS, last_update_ms=now_ms)
    return transaction.move_to(
        state,
        producer_id=transaction.next_producer_id,
        previous_producer_id=transaction.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        producer_epoch=0,
        last_producer_epoch=transaction.producer_epoch,
        partitions=_NO_PARTITIONS,
        last_update_ms=now_ms,
    )


def next_producer(transaction: Transaction) -> Producer:
    """The next id and epoch of the producer of a transaction that is ending."""
    if transaction.next_producer_id != NO_PRODUCER_ID:
        return Producer(transaction.next_producer_id, 0)
    return Producer(transaction.producer_id, transaction.producer_epoch)


def is_timed_out(transaction: Transaction, now_ms: int) -> bool:
    return transaction.state is _S.ONGOING and transaction.start_ms + transaction.timeout_ms < now_ms


def is_expired(transaction: Transaction, now_ms: int, expiration_ms: int) -> bool:
    """Return whether the id is without news for long; an id that never got an epoch expires too."""
    return transaction.is_ended and transaction.last_update_ms <= now_ms - expiration_ms


def expire(transaction: Transaction) -> Transaction:
    return transaction.move_to(_S.DEAD)


def _is_next(transaction: Transaction, producer: Producer) -> bool:
    """Return whether the producer has the id that follows one whose epochs are used up: its EndTxn was answered, and
    the markers with the id before are not all written yet."""
    return transaction.next_producer_id != NO_PRODUCER_ID and producer == next_producer(transaction)


def _wrong_producer(transaction: Transaction, producer: Producer) -> ErrorCode:
    if _is_next(transaction, producer):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if producer.id != transaction.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if producer.epoch != transaction.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE
