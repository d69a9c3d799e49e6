"""One producer of a partition, as the log knows it, and the entry that its next batch or a marker makes of it.

Its epoch, its last ten batches (to recognise a retry), and the first offset of its open transaction. Immutable.
"""

from typing import NamedTuple

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.core.batch_info import BatchInfo
from odradek.broker.log.core.validation import Origin
from odradek.protocol.record_batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, SEQUENCES, Buffer, read_header
from odradek.protocol.transaction_markers import read_marker

BATCHES_KEPT = 10
"""Number of batches of a producer by which a retry is recognised. Apache Kafka keeps five, as many as a client has in
flight on a connection; but when a leader moves, five may be under way to the former one, stored and unanswered, while
the client sends five more to the new one."""
_NO_OFFSET = -1


class AppendedBatch(NamedTuple):
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) % SEQUENCES

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

    def is_in_transaction(self, epoch: int) -> bool:
        """True if a transaction of the producer is open here, and of this epoch."""
        return self.txn_first_offset >= 0 and self.epoch == epoch

    def next_sequence(self, epoch: int) -> int:
        """The sequence that the producer's next batch has in this epoch."""
        return (self.last_sequence + 1) % SEQUENCES if epoch == self.epoch else 0

    def reaches(self, sequence: int) -> bool:
        """True if the sequence is the next one, or one of the half of all sequences before it."""
        return (self.next_sequence(self.epoch) - sequence) % SEQUENCES < SEQUENCES // 2

    def duplicate_of(self, batch: BatchInfo) -> AppendedBatch | None:
        """The kept batch that this one repeats; the next one in sequence repeats none."""
        if batch.producer_epoch == self.epoch and batch.base_sequence != (self.last_sequence + 1) % SEQUENCES:
            last_sequence = batch.last_sequence
            for kept in self.batches:
                if kept[0] == last_sequence and kept.first_sequence == batch.base_sequence:
                    return kept
        return None


def next_entry(entry: ProducerEntry, batch: BatchInfo) -> ProducerEntry | None:
    """Return the entry after the next batch of its producer; None if the batch is another one, or begins a
    transaction."""
    if not entry.batches or batch.producer_epoch != entry.epoch or batch.is_control:
        return None
    if batch.is_transactional != (entry.txn_first_offset >= 0):
        return None
    if batch.base_sequence != (entry.last_sequence + 1) % SEQUENCES:
        return None
    return after_batch(entry, batch, Origin.CLIENT)


def check_epoch(entry: ProducerEntry, epoch: int) -> None:
    if epoch < entry.epoch:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"Epoch of producer {entry.producer_id} is {epoch}, the last seen was {entry.epoch}",
        )


def check_coordinator_epoch(entry: ProducerEntry, coordinator_epoch: int) -> None:
    if coordinator_epoch < entry.coordinator_epoch:
        raise KafkaError(
            ErrorCode.TRANSACTION_COORDINATOR_FENCED,
            f"Marker for producer {entry.producer_id} has coordinator epoch {coordinator_epoch}, "
            f"{entry.coordinator_epoch} is known",
        )


def after_batch(entry: ProducerEntry, batch: BatchInfo, origin: Origin | None) -> ProducerEntry:
    """The entry after a batch of records."""
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
    last = tuple.__new__(AppendedBatch, (batch.last_sequence, last_offset, last_offset - batch.base_offset, timestamp))
    return tuple.__new__(
        ProducerEntry,
        (
            entry.producer_id,
            batch.producer_epoch,
            entry.coordinator_epoch,
            timestamp,
            first_offset,
            (*kept, last),
        ),
    )


def after_marker(
    entry: ProducerEntry, batch: BatchInfo, data: Buffer, origin: Origin | None
) -> tuple[ProducerEntry, bool | None]:
    """The entry after a control batch, whose one record says whether the producer's transaction was aborted. None:
    compaction has emptied the batch, or it is of another kind."""
    found = read_marker(data, batch.position, read_header(data, batch.position))
    if found is None:
        return entry, None
    marker, timestamp = found
    if origin is not None:
        check_coordinator_epoch(entry, marker.coordinator_epoch)
    return (
        ProducerEntry(
            entry.producer_id,
            batch.producer_epoch,
            marker.coordinator_epoch,
            timestamp,
            _NO_OFFSET,
            entry.batches if batch.producer_epoch == entry.epoch else (),
        ),
        not marker.is_committed,
    )
