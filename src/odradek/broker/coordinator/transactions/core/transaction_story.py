"""Events of a transactional id for the flight recorder, and the choice of the events that are recorded.

A busy producer commits a hundred times a second, and a journal is bounded: of successful transactions a sample is
recorded. Events of other transactions are kept until they end, then counted. A transaction that is fenced, times out,
has a marker refused or stays open for a second is recorded with all that is kept of it.
"""

from collections import deque
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from odradek.broker.coordinator.transactions.core.transaction import Transaction, TransactionState
from odradek.broker.quotas.core.token_bucket import TokenBucket
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import NO_PRODUCER_EPOCH

SLOW_MS: Final = 1_000
"""Age at which an open transaction is recorded."""
SAMPLE_MS: Final = 60_000
"""Time between two recorded transactions of one id that went well."""
_KEPT_MAX: Final = 40

INITIALIZED, BEGUN, PARTITIONS_ADDED, LOADED, EXPIRED = "Initialized", "Begun", "PartitionsAdded", "Loaded", "Expired"
MARKERS_WRITTEN, MARKERS_REFUSED, MARKERS_DROPPED = "MarkersWritten", "MarkersRefused", "MarkersDropped"
TIMED_OUT, FENCED = "TimedOut", "Fenced"
_UNUSUAL: Final = frozenset({INITIALIZED, LOADED, MARKERS_REFUSED, MARKERS_DROPPED, TIMED_OUT, FENCED})
_NAMES: Final = {state: state.label for state in TransactionState} | {
    TransactionState.EMPTY: INITIALIZED,
    TransactionState.ONGOING: BEGUN,
    TransactionState.DEAD: EXPIRED,
}
_FIRST: Final = frozenset({BEGUN, EXPIRED})
_NONE: Final[frozenset[TopicPartition]] = frozenset()
_ENDS: Final = frozenset({TransactionState.COMPLETE_COMMIT.label, TransactionState.COMPLETE_ABORT.label})


class TransactionEvent(NamedTuple):
    """A tuple, because it is made at each move of each transaction, recorded or not."""

    time_ms: int
    what: str
    transaction: Transaction
    """The value after the event."""
    before: Transaction | None = None
    named: Collection[TopicPartition] | None = None
    """The partitions of the event, unless the move tells them."""
    peer: int | None = None
    """The leader of the partitions."""
    why: str = ""
    left_out: int = 0
    """Number of transactions or single events of the id that were not recorded before this one."""

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        if self.named is not None:
            return frozenset(self.named)
        return self.transaction.partitions - (_NONE if self.before is None else self.before.partitions)

    @property
    def text(self) -> str:
        parts = [self.why] if self.why else []
        before, after = self.before, self.transaction
        if before is not None and NO_PRODUCER_EPOCH < before.producer_epoch != after.producer_epoch:
            if before.producer_id != after.producer_id:
                parts.append(f"producer id {before.producer_id} ends")
            elif after.bumps_epochs:
                parts.append(f"the next transaction has epoch {after.producer_epoch}")
            else:
                parts.append(f"epoch {after.producer_epoch} fences epoch {before.producer_epoch}")
        if self.what in _ENDS and after.start_ms >= 0:
            parts.append(f"{self.time_ms - after.start_ms:,} ms after it began")
        return "; ".join(parts)


def move_name(before: Transaction, after: Transaction) -> str:
    """Name the event of a move: the state, except where a state may be entered in several ways."""
    if after.state is before.state is TransactionState.ONGOING:
        return PARTITIONS_ADDED
    return _NAMES[after.state]


class TransactionStory:
    """Events of the present transaction of an id, and whether they are recorded."""

    __slots__ = ("_is_recorded", "_kept", "_left_out", "_sampled_ms")

    def __init__(self) -> None:
        self._kept: deque[TransactionEvent] = deque(maxlen=_KEPT_MAX)
        self._is_recorded = False
        self._sampled_ms: int | None = None
        self._left_out = 0

    def add(self, event: TransactionEvent, samples: TokenBucket, troubles: TokenBucket) -> Sequence[TransactionEvent]:
        """Return the events to be recorded now."""
        now_ms, what, kept = event.time_ms, event.what, self._kept
        if what in _FIRST:
            kept.clear()
            self._is_recorded = self._is_sample(now_ms) and samples.try_take(1, now_ms)
            if self._is_recorded:
                self._sampled_ms = now_ms
        kept.append(event)
        if not self._is_recorded and (what in _UNUSUAL or now_ms - kept[0].time_ms >= SLOW_MS):
            self._is_recorded = troubles.try_take(1, now_ms)
        if not self._is_recorded:
            if event.transaction.is_ended:
                self._left_out += 1
                kept.clear()
            return ()
        events = self._take_kept()
        self._is_recorded = not event.transaction.is_ended
        return events

    def overdue(self, now_ms: int, troubles: TokenBucket) -> list[TransactionEvent]:
        """Return the events of a transaction that is open for long and not recorded yet."""
        if not self._is_recorded and self._is_slow(now_ms):
            self._is_recorded = troubles.try_take(1, now_ms)
            if self._is_recorded:
                return self._take_kept()
        return []

    def _is_sample(self, now_ms: int) -> bool:
        return self._sampled_ms is None or now_ms - self._sampled_ms >= SAMPLE_MS

    def _is_slow(self, now_ms: int) -> bool:
        return bool(self._kept) and now_ms - self._kept[0].time_ms >= SLOW_MS

    def _take_kept(self) -> list[TransactionEvent]:
        events = list(self._kept)
        self._kept.clear()
        if events and self._left_out:
            events[0] = events[0]._replace(left_out=self._left_out)
            self._left_out = 0
        return events
