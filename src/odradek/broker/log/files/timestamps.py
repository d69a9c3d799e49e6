"""Finding records by time: the time index narrows to a stretch of batches, the records of one batch decide."""

import os
from collections.abc import Iterator, Sequence

from odradek.broker.log.files.segment import Segment, TimestampOffset
from odradek.protocol.record_batch import MAGIC, BatchHeader
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
    """The first of the records with the largest timestamp."""
    best = max(segments, key=lambda segment: segment.max_timestamp.timestamp)
    newest = best.max_timestamp
    if newest.timestamp < 0:
        return None
    for position, header in best.headers(best.index.position_for(newest.offset)):
        if header.max_timestamp == newest.timestamp and header.last_offset >= log_start_offset:
            for record in _records(best, position, header):
                if record.timestamp == newest.timestamp:
                    return record
    return None


def _records(segment: Segment, position: int, header: BatchHeader) -> Iterator[TimestampOffset]:
    if header.magic < MAGIC:
        yield TimestampOffset(header.base_offset, header.max_timestamp)
        return
    data = os.pread(segment.file.fileno(), header.size, position)
    for record in read_records(data, 0, header):
        yield TimestampOffset(record.offset, record.timestamp)
