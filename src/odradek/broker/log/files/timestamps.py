"""Search of records by time: the time index selects a range of batches, the records of one batch give the result."""

import os
from collections.abc import Iterator, Sequence

from odradek.broker.log.files.segment import Segment, TimestampOffset
from odradek.protocol.record_batch import MAGIC, NO_TIMESTAMP, BatchHeader
from odradek.protocol.records import read_records


def first_at_or_after(segments: Sequence[Segment], timestamp: int, log_start_offset: int) -> TimestampOffset | None:
    for segment in segments:
        if segment.max_timestamp.timestamp < timestamp or segment.end_offset <= log_start_offset:
            continue
        entry = segment.time_index.lookup(timestamp)
        start = max(entry[1] if entry else segment.base_offset, log_start_offset)
        for position, header in segment.headers(segment.index.position_for(start)):
            if header.max_timestamp >= timestamp and header.last_offset >= log_start_offset:
                for record in _records(segment, position, header):
                    if record.timestamp >= timestamp and record.offset >= log_start_offset:
                        return record
    return None


def youngest(segments: Sequence[Segment], log_start_offset: int) -> TimestampOffset | None:
    """The first record with the largest timestamp that is not deleted."""
    best: TimestampOffset | None = None
    for segment in sorted(segments, key=lambda segment: segment.max_timestamp.timestamp, reverse=True):
        timestamp = segment.max_timestamp.timestamp
        if timestamp < 0 or (best is not None and timestamp <= best.timestamp):
            break
        if segment.end_offset > log_start_offset:
            best = _youngest_in(segment, log_start_offset, best)
    return best


def _youngest_in(segment: Segment, log_start_offset: int, best: TimestampOffset | None) -> TimestampOffset | None:
    """Search the segment: one batch has it, unless that batch is before the log's start, which DeleteRecords has moved
    into the segment."""
    newest = segment.max_timestamp
    for position, header in segment.headers(segment.index.position_for(max(newest.offset, log_start_offset))):
        least = NO_TIMESTAMP if best is None else best.timestamp
        if header.max_timestamp > least and header.last_offset >= log_start_offset:
            for record in _records(segment, position, header):
                if record.offset >= log_start_offset and record.timestamp > (best.timestamp if best else NO_TIMESTAMP):
                    best = record
            if best is not None and best.timestamp == newest.timestamp:
                break
    return best


def _records(segment: Segment, position: int, header: BatchHeader) -> Iterator[TimestampOffset]:
    if header.magic < MAGIC:
        yield TimestampOffset(header.base_offset, header.max_timestamp)
        return
    data = os.pread(segment.file.fileno(), header.size, position)
    for record in read_records(data, 0, header):
        yield TimestampOffset(record.offset, record.timestamp)
