"""Producer state of a partition: its idempotent and transactional producers.

An append is staged against this before it is written and committed after, so a refused or failed one leaves no trace.
Entries are immutable; the partition's writer alone replaces them.

A producer without an entry begins at sequence 0. Apache Kafka accepts any first sequence, because the entry may have
been lost: expired, evicted, or deleted with its records. But a first sequence above 0 may also be the second batch of a
producer whose first one was refused a moment ago. A client that takes the acknowledgement of a later batch as that of
all batches before it (librdkafka does) then reports records as delivered that are nowhere. So a first sequence above 0
is accepted only where the entry can have been lost (`forgotten_up_to`), or where it continues what the producer wrote
to a deleted topic of the same name (`inherited`). docs/decisions/0016 has the cases.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.core.batch_info import BatchInfo
from odradek.broker.log.core.open_transactions import CompletedTransaction, OpenTransactions
from odradek.broker.log.core.producer_entry import (
    AppendedBatch,
    ProducerEntry,
    after_batch,
    after_marker,
    check_coordinator_epoch,
    check_epoch,
    next_entry,
)
from odradek.broker.log.core.validation import Origin
from odradek.broker.log.core.verification import VerificationGuard, Verifications
from odradek.protocol.record_batch import Buffer
from odradek.protocol.transaction_markers import EndTransactionMarker

MAX_PRODUCERS = 100_000
NO_PRODUCER = -1
EVERY_PRODUCER = 2**63 - 1


class Staged(NamedTuple):
    """Changes of an append, made once it is written."""

    entries: dict[int, ProducerEntry]
    completed: tuple[CompletedTransaction, ...] = ()


NOTHING_STAGED = Staged({})


class ProducerStates:
    __slots__ = (
        "_expiration_ms",
        "entries",
        "forgotten_up_to",
        "inherited",
        "map_end_offset",
        "transactions",
        "verifications",
    )

    def __init__(self, expiration_ms: int) -> None:
        self._expiration_ms = expiration_ms
        self.entries: dict[int, ProducerEntry] = {}
        self.map_end_offset = 0  # the entries know the log up to here
        self.forgotten_up_to = NO_PRODUCER
        """The greatest producer id that may have written to this log and has no entry."""
        self.inherited: Mapping[int, ProducerEntry] = {}
        """Entries of the deleted log of the same name that this one replaced."""
        self.transactions = OpenTransactions()
        self.verifications = Verifications()

    # -- appending ----------------------------------------------------------------------------------------------

    def find_duplicate(self, batch: BatchInfo) -> AppendedBatch | None:
        entry = self.entries.get(batch.producer_id)
        return entry.duplicate_of(batch) if entry else None

    def stage_next(self, batches: Sequence[BatchInfo]) -> Staged | None:
        """Stage one batch of a client that has no producer, or is the next of a known one, in the same epoch and in or
        outside of its transaction like the one before. None for other batches, which `find_duplicate` and `stage`
        handle."""
        if len(batches) != 1:
            return None
        batch = batches[0]
        producer_id = batch.producer_id
        if producer_id < 0:
            return NOTHING_STAGED
        entry = self.entries.get(producer_id)
        if entry is None:
            return None
        entry = next_entry(entry, batch)
        return None if entry is None else Staged({producer_id: entry})

    def stage(
        self,
        batches: Sequence[BatchInfo],
        data: Buffer,
        origin: Origin | None,
        *,
        may_begin_anywhere: bool = True,
        guard: VerificationGuard | None = None,
    ) -> Staged:
        """Check the batches in `data` in order, and return their changes of the state.

        `origin` None is for what is replicated or recovered: that was checked when it was first written.
        `may_begin_anywhere`: a producer whose entry can have been lost may. `guard`: proof that the coordinator knows
        of the transaction that the batches begin here.
        """
        entries: dict[int, ProducerEntry] = {}
        completed: list[CompletedTransaction] = []
        for batch in batches:
            producer_id = batch.producer_id
            if producer_id < 0:
                continue
            entry = entries.get(producer_id) or self.entries.get(producer_id) or ProducerEntry(producer_id)
            if origin is not None and batch.producer_epoch != entry.epoch:
                check_epoch(entry, batch.producer_epoch)
            if batch.is_control:
                first_offset = entry.txn_first_offset
                entry, is_aborted = after_marker(entry, batch, data, origin)
                entries[producer_id] = entry
                if is_aborted is not None and first_offset >= 0:
                    completed.append(self._completed(batch, first_offset, is_aborted, entries, completed))
            else:
                if batch.is_transactional and origin is not None and not entry.is_in_transaction(batch.producer_epoch):
                    self.verifications.check(producer_id, guard)
                if origin is Origin.CLIENT:
                    self._check_sequence(entry, batch, may_begin_anywhere=may_begin_anywhere)
                entry = after_batch(entry, batch, origin)
            entries[producer_id] = entry
        return Staged(entries, tuple(completed)) if entries else NOTHING_STAGED

    def _completed(
        self,
        marker: BatchInfo,
        first_offset: int,
        is_aborted: bool,
        staged: Mapping[int, ProducerEntry],
        before: Iterable[CompletedTransaction],
    ) -> CompletedTransaction:
        """The transaction that the marker ends, when all staged and completed before it is in the log as well."""
        last_offset = marker.last_offset
        if not is_aborted:
            return CompletedTransaction(marker.producer_id, first_offset, last_offset, False)
        stable = [entry.txn_first_offset for entry in staged.values() if entry.txn_first_offset >= 0]
        ongoing = self.transactions.first_ongoing({first_offset, *(other.first_offset for other in before)})
        if ongoing is not None:
            stable.append(ongoing)
        return CompletedTransaction(
            marker.producer_id, first_offset, last_offset, is_aborted, min(stable, default=last_offset + 1)
        )

    def next_sequence(self, producer_id: int, epoch: int) -> int:
        entry = self.entries.get(producer_id)
        return entry.next_sequence(epoch) if entry is not None else 0

    def _check_sequence(self, entry: ProducerEntry, batch: BatchInfo, *, may_begin_anywhere: bool) -> None:
        expected = entry.next_sequence(batch.producer_epoch)
        if batch.base_sequence != expected:
            if may_begin_anywhere and self.may_begin_at(batch.producer_id, batch.producer_epoch, batch.base_sequence):
                return
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Producer {entry.producer_id} with epoch {batch.producer_epoch} sent sequence {batch.base_sequence}, "
                f"{expected} is next",
            )

    def may_begin_at(self, producer_id: int, epoch: int, sequence: int) -> bool:
        """Return whether the producer has no entry, and may have had one that this sequence continues."""
        if producer_id in self.entries:
            return False
        if producer_id <= self.forgotten_up_to:
            return True
        former = self.inherited.get(producer_id)
        return former is not None and former.epoch == epoch and former.reaches(sequence)

    def is_in_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        entry = self.entries.get(producer_id)
        return entry is not None and entry.is_in_transaction(producer_epoch)

    def begin_verification(self, producer_id: int, producer_epoch: int) -> VerificationGuard | None:
        """A guard for the first append of a transaction; None: the transaction is open already."""
        if self.is_in_transaction(producer_id, producer_epoch):
            return None
        return self.verifications.begin(producer_id, producer_epoch)

    def check_marker(self, marker: EndTransactionMarker) -> bool:
        """Return whether the marker has to be written, or raise KafkaError. A repeated marker changes nothing, and is
        not written again: its transaction is over, and its epochs are known. Where each end raises the epoch, a
        marker of the epoch of the open transaction comes late: it ended the one before (KIP-1228)."""
        entry = self.entries.get(marker.producer_id)
        if entry is None:
            return True
        check_epoch(entry, marker.producer_epoch)
        if marker.bumps_epoch and entry.is_in_transaction(marker.producer_epoch):
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Marker with epoch {marker.producer_epoch} ended a former transaction of producer {entry.producer_id}",
            )
        check_coordinator_epoch(entry, marker.coordinator_epoch)
        is_known = entry.epoch == marker.producer_epoch and entry.coordinator_epoch == marker.coordinator_epoch
        return entry.txn_first_offset >= 0 or not is_known

    def commit(self, staged: Staged, end_offset: int) -> None:
        """Take over the staged changes: the batches are in the log, and their completed transactions are in the
        transaction index."""
        self.map_end_offset = end_offset
        entries = self.entries
        for producer_id, entry in staged.entries.items():
            entries[producer_id] = entry
            if entry.txn_first_offset >= 0:
                self.transactions.begin(entry.txn_first_offset, producer_id)
            if self.verifications:
                self.verifications.appended(producer_id, entry.epoch, is_open=entry.txn_first_offset >= 0)
        if staged.completed:
            for transaction in staged.completed:
                self.transactions.complete(transaction)
        if len(entries) > MAX_PRODUCERS:
            self._evict()

    def has_transaction_since(self, time_ms: int) -> bool:
        """Return whether the producer of the first open transaction has been silent since the time, or longer."""
        entry = self.entries.get(self.transactions.first_ongoing_producer)
        return entry is not None and 0 < entry.last_timestamp < time_ms

    def advance_high_watermark(self, high_watermark: int) -> None:
        self.transactions.advance_high_watermark(high_watermark)

    # -- keeping ------------------------------------------------------------------------------------------------

    def load(self, entries: Iterable[ProducerEntry], end_offset: int, now_ms: int) -> None:
        """Replace the state by a snapshot."""
        self.clear(end_offset)
        for entry in entries:
            if self._is_expired(entry, now_ms):
                self._forget(entry.producer_id)
            else:
                self.entries[entry.producer_id] = entry
        self.transactions.load(
            (entry.txn_first_offset, pid) for pid, entry in self.entries.items() if entry.txn_first_offset >= 0
        )

    def clear(self, end_offset: int) -> None:
        self.entries.clear()
        self.transactions.load(())
        self.verifications.clear()
        self.map_end_offset = end_offset

    def set_expiration(self, expiration_ms: int) -> None:
        self._expiration_ms = expiration_ms

    def remove_expired(self, now_ms: int) -> int:
        """Remove expired entries. May run beside the writer: an entry that was renewed meanwhile stays."""
        expired = [entry for entry in tuple(self.entries.values()) if self._is_expired(entry, now_ms)]
        for entry in expired:
            # First: otherwise the writer could see it without an entry and not yet as forgotten.
            self._forget(entry.producer_id)
            if self.entries.get(entry.producer_id) is entry:
                self.entries.pop(entry.producer_id, None)
        return len(expired)

    def _forget(self, producer_id: int) -> None:
        self.forgotten_up_to = max(self.forgotten_up_to, producer_id)

    def oldest_kept_ms(self, now_ms: int) -> int:
        """Entries of this time and before have expired."""
        return now_ms - self._expiration_ms

    def _is_expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        return entry.txn_first_offset < 0 and entry.last_timestamp <= self.oldest_kept_ms(now_ms)

    def _evict(self) -> None:
        """Remove an eighth, the longest silent ones: memory is bounded even against a flood of new ids."""
        silent = sorted(
            (entry.last_timestamp, pid) for pid, entry in self.entries.items() if entry.txn_first_offset < 0
        )
        for _, producer_id in silent[: MAX_PRODUCERS // 8]:
            self._forget(producer_id)
            del self.entries[producer_id]
