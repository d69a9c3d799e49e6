"""One transactional id: its producer, its state and the partitions of its transaction. Pure; never changed in place.

A decision makes the next value; the coordinator takes it over when the record that says so is replicated. So memory
always equals a replay of the log, and a failed write has no effect: it uses up no epoch.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final, NamedTuple

from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP

EPOCH_MAX: Final = 32_767
"""The largest epoch that a marker may have. Producers get smaller ones, so that each can be fenced."""
CLASSIC: Final = 0
EPOCH_BUMP_VERSION: Final = 2
"""The transaction version (KIP-890) in which each end of a transaction raises the epoch."""


class TransactionState(IntEnum):
    """The number is what records say; `label` is the name that clients are shown."""

    EMPTY = 0  # a producer, no transaction yet
    ONGOING = 1  # partitions or groups were added
    PREPARE_COMMIT = 2  # decided; markers are being written
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4  # all markers are written
    COMPLETE_ABORT = 5
    DEAD = 6  # expired; the id is about to be removed
    PREPARE_EPOCH_FENCE = 7  # of Kafka's coordinator alone, in memory: a fence is one move to PREPARE_ABORT here

    @property
    def label(self) -> str:
        return _LABELS[self]


_LABELS: Final = {state: state.name.title().replace("_", "") for state in TransactionState}
STATES_BY_LABEL: Final[Mapping[str, TransactionState]] = {label: state for state, label in _LABELS.items()}

_S = TransactionState
_ENDED: Final = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
PREPARED: Final = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
LEGAL_FROM: Mapping[TransactionState, frozenset[TransactionState]] = {
    _S.EMPTY: _ENDED,
    _S.ONGOING: _ENDED | {_S.ONGOING},
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    _S.PREPARE_ABORT: _ENDED | {_S.ONGOING, _S.PREPARE_EPOCH_FENCE},  # without a transaction: version 2 only
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: _ENDED,
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.ONGOING}),
}


class IllegalTransactionMove(Exception):
    """A state that can't follow the present one. Nothing has changed."""


class Transaction(NamedTuple):
    """A tuple, which is copied three times in each transaction: for that a dataclass takes four times as long."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition]
    last_update_ms: int
    start_ms: int = NO_TIMESTAMP
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID  # taken when the markers of an exhausted epoch are written
    last_producer_epoch: int = NO_PRODUCER_EPOCH  # before the last bump that a producer asked for; not in the log
    client_version: int = CLASSIC

    @classmethod
    def new(cls, transactional_id: str, producer_id: int, timeout_ms: int, now_ms: int) -> "Transaction":
        """Return the value of an id without records: its first epoch is the next one."""
        nothing: frozenset[TopicPartition] = frozenset()
        return cls(transactional_id, producer_id, NO_PRODUCER_EPOCH, timeout_ms, _S.EMPTY, nothing, now_ms)

    @property
    def is_ended(self) -> bool:
        return self.state in _ENDED

    @property
    def is_exhausted(self) -> bool:
        """No further epoch may be given to a producer of this id: the last one is for a fence."""
        return is_exhausted(self.producer_epoch)

    @property
    def bumps_epochs(self) -> bool:
        return self.client_version >= EPOCH_BUMP_VERSION

    def move_to(self, state: TransactionState, **changes: Any) -> "Transaction":
        if self.state not in LEGAL_FROM[state]:
            raise IllegalTransactionMove(
                f"transactional id {self.transactional_id}: {self.state.label} → {state.label}"
            )
        values: list[object] = [*self]  # `_replace` takes three times as long
        values[_PLACES["state"]] = state
        for name, value in changes.items():
            values[_PLACES[name]] = value
        moved = Transaction._make(values)
        assert NO_PRODUCER_EPOCH <= moved.producer_epoch <= EPOCH_MAX, f"epoch {moved.producer_epoch}"
        return moved


_PLACES: Final[Mapping[str, int]] = {name: place for place, name in enumerate(Transaction._fields)}


def is_exhausted(epoch: int) -> bool:
    return epoch >= EPOCH_MAX - 1
