"""The marker that ends a transaction in a partition: a control batch of one record, in Kafka's byte format.

    key    version 0 (int16), type (int16): 0 abort, 1 commit
    value  version 0 (int16), coordinator epoch (int32)

The batch is transactional, has the producer's id and epoch, and no sequence.
"""

from struct import Struct
from typing import NamedTuple

from odradek.protocol.record_batch import BatchHeader, Buffer, build_batch
from odradek.protocol.records import ControlType, Record, control_key, read_control_type, read_records

_VALUE = Struct(">hi")
_VERSION = 0


class EndTransactionMarker(NamedTuple):
    """The outcome of a producer's transaction, as its coordinator decided it."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_committed: bool
    bumps_epoch: bool = False  # its epoch is the one after the transaction's (version 2); not in the record


def build_marker(marker: EndTransactionMarker, timestamp: int) -> bytes:
    kind = ControlType.COMMIT if marker.is_committed else ControlType.ABORT
    record = Record(0, timestamp, control_key(kind), _VALUE.pack(_VERSION, marker.coordinator_epoch))
    return build_batch(
        [record],
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transactional=True,
        control=True,
    )


def read_marker(buf: Buffer, pos: int, header: BatchHeader) -> tuple[EndTransactionMarker, int] | None:
    """The marker of a control batch and its timestamp; None: the batch is empty or has another kind of record."""
    record = next(read_records(buf, pos, header), None) if header.record_count else None
    marker = None if record is None else marker_in(header, record)
    return None if record is None or marker is None else (marker, record.timestamp)


def marker_in(header: BatchHeader, record: Record) -> EndTransactionMarker | None:
    """The marker that a control record is; None: it is of another kind."""
    kind, value = read_control_type(record.key), record.value or b""
    if kind not in (ControlType.ABORT, ControlType.COMMIT) or len(value) < _VALUE.size:
        return None
    _, coordinator_epoch = _VALUE.unpack_from(value)
    return EndTransactionMarker(
        header.producer_id, header.producer_epoch, coordinator_epoch, kind is ControlType.COMMIT
    )
