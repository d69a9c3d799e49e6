"""Result of an append to a partition's log."""

from typing import NamedTuple

from odradek.broker.log.core.producer_entry import AppendedBatch
from odradek.protocol.record_batch import NO_TIMESTAMP


class AppendResult(NamedTuple):
    """Offsets and times of appended records. For a duplicate: where they were put the first time."""

    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time_ms: int  # -1 when records keep their producer's time
    log_start_offset: int
    is_duplicate: bool = False


def duplicate_of(first: AppendedBatch, log_append_time_ms: int, log_start_offset: int) -> AppendResult:
    """Return the result for a batch that its producer has sent before."""
    return AppendResult(
        first.first_offset,
        first.last_offset,
        first.timestamp,
        first.timestamp if log_append_time_ms >= 0 else NO_TIMESTAMP,
        log_start_offset,
        is_duplicate=True,
    )
