"""Facts of a batch that the log needs once the batch has its offsets."""

from typing import NamedTuple

from odradek.protocol.record_batch import CONTROL_BIT, LOG_OVERHEAD, MAX_SEQUENCE, TRANSACTIONAL_BIT, BatchHeader


class BatchInfo(NamedTuple):
    """Facts of a batch with its place in the log."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    position: int  # in ValidatedBatches.data
    size: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    is_transactional: bool
    is_control: bool


def batch_info(header: BatchHeader, base_offset: int, position: int) -> BatchInfo:
    """Facts of the batch with this header for the log, once it has its offsets."""
    _, length, _, _, _, attributes, delta, _, max_timestamp, producer_id, producer_epoch, sequence, _ = header
    # tuple.__new__ skips the Python-level constructor of NamedTuple: one is made per batch that is written anywhere.
    info: BatchInfo = tuple.__new__(
        BatchInfo,
        (
            base_offset,
            base_offset + delta,
            max_timestamp,
            position,
            length + LOG_OVERHEAD,
            producer_id,
            producer_epoch,
            sequence,
            sequence if sequence < 0 else (sequence + delta) & MAX_SEQUENCE,
            attributes & TRANSACTIONAL_BIT != 0,
            attributes & CONTROL_BIT != 0,
        ),
    )
    return info
