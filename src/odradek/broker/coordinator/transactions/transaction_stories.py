"""Events of transactions, passed from the coordinator to the flight recorder.

Called at moves of an id, under its lock, and by the marker sender, under none. Nothing here blocks or fails a move.
"""

import threading
from collections.abc import Callable, Collection, Iterable

from odradek.base.clock import Clock
from odradek.broker.coordinator.transactions.core.decisions import Producer
from odradek.broker.coordinator.transactions.core.transaction import Transaction
from odradek.broker.coordinator.transactions.core.transaction_story import (
    FENCED,
    LOADED,
    TIMED_OUT,
    TransactionEvent,
    TransactionStory,
    move_name,
)
from odradek.broker.coordinator.transactions.transaction_entry import TransactionEntry
from odradek.broker.quotas.core.token_bucket import TokenBucket
from odradek.model.topology import TopicPartition

_SAMPLES_BURST, _SAMPLES_PER_S = 100, 1.0
_TROUBLES_BURST, _TROUBLES_PER_S = 1_000, 2.0


class TransactionStories:
    def __init__(self, clock: Clock, record: Callable[[TransactionEvent], None] | None) -> None:
        """`record` must not block; None: nothing is recorded."""
        self._clock = clock
        self._record = record
        self._samples = TokenBucket(_SAMPLES_PER_S, _SAMPLES_BURST / _SAMPLES_PER_S, clock.now_ms())
        self._troubles = TokenBucket(_TROUBLES_PER_S, _TROUBLES_BURST / _TROUBLES_PER_S, clock.now_ms())
        self._lock = threading.Lock()

    def moved(self, entry: TransactionEntry, before: Transaction, why: str = "") -> None:
        """Record a move; called after the entry has its next value."""
        if self._record is not None:
            after = entry.transaction
            self._add(entry, TransactionEvent(self._clock.now_ms(), move_name(before, after), after, before, why=why))

    def timed_out(self, entry: TransactionEntry) -> None:
        if self._record is not None:
            transaction = entry.transaction
            why = f"open for longer than transaction.timeout.ms={transaction.timeout_ms}"
            self._add(entry, TransactionEvent(self._clock.now_ms(), TIMED_OUT, transaction, named=(), why=why))

    def fenced(self, entry: TransactionEntry, request: str, producer: Producer | None) -> None:
        """A request of a producer whose epoch is over was refused."""
        if self._record is not None:
            transaction = entry.transaction
            asked = "" if producer is None else f" of producer {producer.id}, epoch {producer.epoch}"
            why = f"{request}{asked} refused: producer {transaction.producer_id} has epoch {transaction.producer_epoch}"
            self._add(entry, TransactionEvent(self._clock.now_ms(), FENCED, transaction, named=(), why=why))

    def loaded(self, entry: TransactionEntry) -> None:
        """An open or half ended transaction was found in the log by this broker as the next coordinator."""
        if self._record is not None and not entry.transaction.is_ended:
            transaction = entry.transaction
            why = f"replayed by the next coordinator in state {transaction.state.label}"
            self._add(entry, TransactionEvent(self._clock.now_ms(), LOADED, transaction, why=why))

    def markers(
        self,
        what: str,
        entry: TransactionEntry,
        transaction: Transaction,
        partitions: Collection[TopicPartition],
        leader: int | None,
        why: str = "",
    ) -> None:
        if self._record is not None:
            now_ms = self._clock.now_ms()
            self._add(entry, TransactionEvent(now_ms, what, transaction, None, partitions, leader, why))

    def overdue(self, entry: TransactionEntry) -> None:
        """Record a transaction that is open for long, if it is not recorded yet."""
        if self._record is not None and entry.story is not None:
            with self._lock:
                self._tell(entry.story.overdue(self._clock.now_ms(), self._troubles))

    def _add(self, entry: TransactionEntry, event: TransactionEvent) -> None:
        with self._lock:
            if entry.story is None:
                entry.story = TransactionStory()
            if events := entry.story.add(event, self._samples, self._troubles):
                self._tell(events)

    def _tell(self, events: Iterable[TransactionEvent]) -> None:
        """Record under the lock, so that events keep their order."""
        assert self._record is not None
        for event in events:
            self._record(event)
