"""Producer state of a partition: its idempotent and transactional producers.

Per producer id: its epoch, its last five batches (to recognise a retry), and the first offset of its open transaction.
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
from struct import Struct
from typing import NamedTuple

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.core.validation import BatchInfo, Origin
from odradek.protocol.record_batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, Buffer, read_header
from odradek.protocol.records import ControlType, read_control_type, read_records

BATCHES_KEPT = 5
MAX_PRODUCERS = 100_000
NO_PRODUCER = -1
EVERY_PRODUCER = 2**63 - 1
_SEQUENCES = 2**31
_NO_OFFSET = -1
_MARKER_VALUE = Struct(">hi")  # version, coordinator epoch


class AppendedBatch(NamedTuple):
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) % _SEQUENCES

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry(NamedTuple):
    producer_id: int
    epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = -1
    last_timestamp: int = NO_TIMESTAMP
    txn_first_offset: int = _NO_OFFSET
    batches: tuple[AppendedBatch, ...] = ()

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def next_sequence(self, epoch: int) -> int:
        """The sequence that the producer's next batch has in this epoch."""
        return (self.last_sequence + 1) % _SEQUENCES if epoch == self.epoch else 0

    def reaches(self, sequence: int) -> bool:
        """Whether the sequence is the next one, or one of the half of all sequences before it."""
        return (self.next_sequence(self.epoch) - sequence) % _SEQUENCES < _SEQUENCES // 2

    def duplicate_of(self, batch: BatchInfo) -> AppendedBatch | None:
        """The kept batch that this one repeats."""
        if batch.producer_epoch == self.epoch:
            last_sequence = batch.last_sequence
            for kept in self.batches:
                if kept[0] == last_sequence and kept.first_sequence == batch.base_sequence:
                    return kept
        return None


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class Staged(NamedTuple):
    """What an append will change once it is written."""

    entries: dict[int, ProducerEntry]
    completed: tuple[CompletedTransaction, ...] = ()


NOTHING_STAGED = Staged({})


class ProducerStates:
    __slots__ = (
        "_expiration_ms",
        "_ongoing",
        "_unreplicated",
        "entries",
        "forgotten_up_to",
        "inherited",
        "map_end_offset",
    )

    def __init__(self, expiration_ms: int) -> None:
        self._expiration_ms = expiration_ms
        self.entries: dict[int, ProducerEntry] = {}
        self.map_end_offset = 0  # the entries know the log up to here
        self.forgotten_up_to = NO_PRODUCER
        """The greatest producer id that may have written to this log and has no entry."""
        self.inherited: Mapping[int, ProducerEntry] = {}
        """Entries of the deleted log of the same name that this one replaced."""
        self._ongoing: dict[int, int] = {}  # first offset → producer id, ascending
        self._unreplicated: dict[int, int] = {}  # first offset → last offset of transactions complete here

    # -- appending ----------------------------------------------------------------------------------------------

    def find_duplicate(self, batch: BatchInfo) -> AppendedBatch | None:
        entry = self.entries.get(batch.producer_id)
        return entry.duplicate_of(batch) if entry else None

    def stage(
        self, batches: Sequence[BatchInfo], data: Buffer, origin: Origin | None, *, may_begin_anywhere: bool = True
    ) -> Staged:
        """Checks the batches, which lie in `data`, in order, and tells what they change.

        `origin` None is for what is replicated or recovered: that was checked when it was first written.
        `may_begin_anywhere`: a producer whose entry can have been lost may.
        """
        entries: dict[int, ProducerEntry] = {}
        completed = []
        for batch in batches:
            producer_id = batch.producer_id
            if producer_id < 0:
                continue
            entry = entries.get(producer_id) or self.entries.get(producer_id) or ProducerEntry(producer_id)
            if origin is not None and batch.producer_epoch != entry.epoch:
                _check_epoch(entry, batch)
            if batch.is_control:
                entry, done = _end_transaction(entry, batch, data, origin)
                if done:
                    completed.append(done)
            else:
                if origin is Origin.CLIENT:
                    self._check_sequence(entry, batch, may_begin_anywhere=may_begin_anywhere)
                entry = _appended(entry, batch, origin)
            entries[producer_id] = entry
        return Staged(entries, tuple(completed)) if entries else NOTHING_STAGED

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
        """Whether the producer has no entry, and may have had one that this sequence continues."""
        if producer_id in self.entries:
            return False
        if producer_id <= self.forgotten_up_to:
            return True
        former = self.inherited.get(producer_id)
        return former is not None and former.epoch == epoch and former.reaches(sequence)

    def commit(self, staged: Staged, end_offset: int) -> None:
        self.map_end_offset = end_offset
        for producer_id, entry in staged.entries.items():
            self.entries[producer_id] = entry
            if entry.txn_first_offset >= 0:
                self._ongoing.setdefault(entry.txn_first_offset, producer_id)
        if len(self.entries) > MAX_PRODUCERS:
            self._evict()

    def complete(self, transaction: CompletedTransaction) -> int:
        """The transaction's marker is written; returns the last stable offset as of it."""
        self._ongoing.pop(transaction.first_offset, None)
        self._unreplicated[transaction.first_offset] = transaction.last_offset
        return min(self._ongoing, default=transaction.last_offset + 1)

    # -- transactions -------------------------------------------------------------------------------------------

    @property
    def first_unstable_offset(self) -> int | None:
        """Where readers of committed records stop: the first transaction that is open, or ended but not replicated."""
        if not self._ongoing and not self._unreplicated:
            return None
        return min(min(self._ongoing, default=_SEQUENCES**2), min(self._unreplicated, default=_SEQUENCES**2))

    def advance_high_watermark(self, high_watermark: int) -> None:
        if self._unreplicated:
            self._unreplicated = {first: last for first, last in self._unreplicated.items() if last >= high_watermark}

    # -- keeping ------------------------------------------------------------------------------------------------

    def load(self, entries: Iterable[ProducerEntry], end_offset: int, now_ms: int) -> None:
        """Starts over from a snapshot."""
        self.clear(end_offset)
        for entry in entries:
            if self._is_expired(entry, now_ms):
                self._forget(entry.producer_id)
            else:
                self.entries[entry.producer_id] = entry
        self._ongoing = dict(
            sorted((entry.txn_first_offset, pid) for pid, entry in self.entries.items() if entry.txn_first_offset >= 0)
        )

    def clear(self, end_offset: int) -> None:
        self.entries.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        self.map_end_offset = end_offset

    def set_expiration(self, expiration_ms: int) -> None:
        self._expiration_ms = expiration_ms

    def remove_expired(self, now_ms: int) -> int:
        """May run beside the writer: an entry that was renewed meanwhile stays."""
        expired = [entry for entry in tuple(self.entries.values()) if self._is_expired(entry, now_ms)]
        for entry in expired:
            self._forget(entry.producer_id)  # first: the writer must not see it without an entry and unforgotten
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
        """Forgets an eighth, those longest silent: memory is bounded even against a flood of fresh ids."""
        silent = sorted(
            (entry.last_timestamp, pid) for pid, entry in self.entries.items() if entry.txn_first_offset < 0
        )
        for _, producer_id in silent[: MAX_PRODUCERS // 8]:
            self._forget(producer_id)
            del self.entries[producer_id]


def _check_epoch(entry: ProducerEntry, batch: BatchInfo) -> None:
    if batch.producer_epoch < entry.epoch:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"Epoch of producer {entry.producer_id} is {batch.producer_epoch}, the last seen was {entry.epoch}",
        )


def _appended(entry: ProducerEntry, batch: BatchInfo, origin: Origin | None) -> ProducerEntry:
    transactional = batch.is_transactional
    if origin is not None and entry.txn_first_offset >= 0 and not transactional:
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"Expected transactional write from producer {entry.producer_id} at offset {batch.base_offset}",
        )
    kept = entry.batches[1 - BATCHES_KEPT :] if batch.producer_epoch == entry.epoch else ()
    first_offset = entry.txn_first_offset
    if transactional and first_offset < 0:
        first_offset = batch.base_offset
    # Once per produced batch, so past the Python-level constructors of NamedTuple: a third of this function's cost.
    timestamp, last_offset = batch.max_timestamp, batch.last_offset
    appended = tuple.__new__(
        AppendedBatch, (batch.last_sequence, last_offset, last_offset - batch.base_offset, timestamp)
    )
    return tuple.__new__(
        ProducerEntry,
        (
            entry.producer_id,
            batch.producer_epoch,
            entry.coordinator_epoch,
            timestamp,
            first_offset,
            (*kept, appended),
        ),
    )


def _end_transaction(
    entry: ProducerEntry, batch: BatchInfo, data: Buffer, origin: Origin | None
) -> tuple[ProducerEntry, CompletedTransaction | None]:
    """A control batch: its one record says how the producer's transaction ended."""
    record = next(read_records(data, batch.position, read_header(data, batch.position)), None)
    if record is None:  # compaction took the marker with the transaction's last record
        return entry, None
    kind = read_control_type(record.key)
    if kind not in (ControlType.ABORT, ControlType.COMMIT) or len(record.value or b"") < _MARKER_VALUE.size:
        return entry, None
    _, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value or b"")
    if origin is not None and coordinator_epoch < entry.coordinator_epoch:
        raise KafkaError(
            ErrorCode.TRANSACTION_COORDINATOR_FENCED,
            f"Marker for producer {entry.producer_id} has coordinator epoch {coordinator_epoch}, "
            f"{entry.coordinator_epoch} is known",
        )
    completed = None
    if entry.txn_first_offset >= 0:
        completed = CompletedTransaction(
            entry.producer_id, entry.txn_first_offset, batch.base_offset, kind is ControlType.ABORT
        )
    return (
        ProducerEntry(
            entry.producer_id,
            batch.producer_epoch,
            coordinator_epoch,
            record.timestamp,
            _NO_OFFSET,
            entry.batches if batch.producer_epoch == entry.epoch else (),
        ),
        completed,
    )
