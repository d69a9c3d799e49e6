"""The marker that ends a transaction in a partition: a control batch of one record, in Kafka's byte format.

    key    version 0 (int16), type (int16): 0 abort, 1 commit
    value  version 0 (int16), coordinator epoch (int32)

The batch is transactional, has the producer's id and epoch, and no sequence.
"""

from struct import Struct
from typing import NamedTuple

from odradek.base.checksum import crc32c
from odradek.protocol.record_batch import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL_BIT,
    CRC_AT,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
)
from odradek.protocol.records import ControlType, Record, read_control_type, read_records

_VALUE = Struct(">hi")
_VERSION = 0
_MARKER = Struct(">qiibIhiqqqhii5shhBhib")
_RECORD = Struct(">5shhBhib")
_BEFORE_KEY = bytes((2 * 16, 0, 0, 0, 2 * 4))  # varints: the record's length, its deltas, the key's length
_BEFORE_VALUE = 2 * _VALUE.size
_CRC = Struct(">I")


class EndTransactionMarker(NamedTuple):
    """The outcome of a producer's transaction, as its coordinator decided it."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_committed: bool
    bumps_epoch: bool = False  # its epoch is the one after the transaction's (version 2); not in the record

    @property
    def ended_epoch(self) -> int:
        """The last epoch that the ended transaction can have had."""
        return self.producer_epoch - 1 if self.bumps_epoch else self.producer_epoch


def build_marker(marker: EndTransactionMarker, timestamp: int) -> bytearray:
    """The same bytes as `record_batch.build_batch` makes, which knows everything that a batch can have: all markers
    have one layout, and one is made for each partition of each transaction."""
    producer_id, producer_epoch, coordinator_epoch, is_committed, _ = marker
    batch = bytearray(
        _MARKER.pack(
            0,
            _MARKER.size - LOG_OVERHEAD,
            NO_LEADER_EPOCH,
            MAGIC,
            0,
            TRANSACTIONAL_BIT | CONTROL_BIT,
            0,
            timestamp,
            timestamp,
            producer_id,
            producer_epoch,
            NO_SEQUENCE,
            1,
            _BEFORE_KEY,
            _VERSION,
            ControlType.COMMIT if is_committed else ControlType.ABORT,
            _BEFORE_VALUE,
            _VERSION,
            coordinator_epoch,
            0,  # headers
        )
    )
    with memoryview(batch) as view:
        _CRC.pack_into(batch, CRC_AT, crc32c(view[ATTRIBUTES_AT:]))
    return batch


def read_marker(buf: Buffer, pos: int, header: BatchHeader) -> tuple[EndTransactionMarker, int] | None:
    """The marker of a control batch and its timestamp; None: the batch is empty or has another kind of record. A record
    of the one layout that brokers write is not taken apart like any other."""
    length, attributes = header.length, header.attributes
    if length == _MARKER.size - LOG_OVERHEAD and not attributes & CODEC_MASK and len(buf) - pos >= _MARKER.size:
        before_key, _, kind, before_value, _, coordinator_epoch, _ = _RECORD.unpack_from(buf, pos + HEADER_SIZE)
        if before_key == _BEFORE_KEY and before_value == _BEFORE_VALUE and header.record_count == 1 and 0 <= kind <= 1:
            marker = EndTransactionMarker(header.producer_id, header.producer_epoch, coordinator_epoch, kind == 1)
            return marker, header.max_timestamp if attributes & LOG_APPEND_TIME_BIT else header.base_timestamp
    record = next(read_records(buf, pos, header), None) if header.record_count else None
    found = None if record is None else marker_in(header, record)
    return None if record is None or found is None else (found, record.timestamp)


def marker_in(header: BatchHeader, record: Record) -> EndTransactionMarker | None:
    """The marker that a control record is; None: it is of another kind."""
    kind, value = read_control_type(record.key), record.value or b""
    if kind not in (ControlType.ABORT, ControlType.COMMIT) or len(value) < _VALUE.size:
        return None
    _, coordinator_epoch = _VALUE.unpack_from(value)
    return EndTransactionMarker(
        header.producer_id, header.producer_epoch, coordinator_epoch, kind is ControlType.COMMIT
    )
