"""Records of a topic, from an offset, a time or the end on, filtered, within limits.

Filters and decoders are those of `odradek.apps.records`: data, never code.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from odradek.apps.records.decoders import AUTOMATIC, Decoder
from odradek.apps.records.filters import Filter, SeenRecord, everything
from odradek.client.cluster_client import ClusterClient, unknown_partition
from odradek.client.partition_offsets import list_offsets
from odradek.client.record_reader import FetchOptions, RecordReader, records_in
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.list_offsets import EARLIEST, LATEST

LIMIT = 50
EXPORTED_MAX = 10_000
_FIRST_STEP = 4
SCANNED_RECORDS_MAX = 50_000
SCANNED_BYTES_MAX = 64 << 20
SCAN_SECONDS_MAX = 4.0
_PARTITION_BYTES = 256 << 10
_POLL_BYTES = 4 << 20  # limits are checked between two polls


class From(StrEnum):
    NEWEST = "newest"
    OLDEST = "oldest"
    OFFSET = "offset"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Query:
    topic: str
    partition: int | None = None
    start: From = From.NEWEST
    offset: int = 0
    time_ms: int = 0
    filter: Filter = everything
    decoder: Decoder = AUTOMATIC
    limit: int = LIMIT
    resume: Mapping[int, int] | None = None
    """Offsets at which an earlier look ended, by partition."""


@dataclass(frozen=True, slots=True)
class Found:
    records: tuple[SeenRecord, ...]
    scanned: int
    is_complete: bool
    """True if all records were looked at; False: a limit was reached first."""
    resume: Mapping[int, int] | None = None
    """Offsets from which to go on, by partition; None: there is no more."""


def browse(client: ClusterClient, query: Query) -> Found:
    topic = client.topic(query.topic)
    partitions = [TopicPartition(topic.name, p.partition) for p in topic.partitions if p.is_available]
    if query.partition is not None:
        wanted = TopicPartition(topic.name, query.partition)
        if wanted.partition not in [p.partition for p in topic.partitions]:
            raise unknown_partition(wanted, len(topic.partitions))
        partitions = [wanted]
    starts = offsets_when(client, partitions, EARLIEST)
    ends = offsets_when(client, partitions, LATEST)
    resume = query.resume or {}
    if query.start is From.NEWEST:
        upper = {tp: max(starts[tp], min(resume.get(tp.partition, end), end)) for tp, end in ends.items()}
        return _newest(client, query, starts, upper)
    begin = _begin(client, query, starts, ends)
    begin = {tp: max(resume.get(tp.partition, offset), starts[tp]) for tp, offset in begin.items()}
    return _oldest(client, query, begin, ends)


class Budget:
    """Records and bytes that may still be read."""

    def __init__(self, records: int = SCANNED_RECORDS_MAX) -> None:
        self.records = records
        self.bytes = SCANNED_BYTES_MAX
        self._until = time.monotonic() + SCAN_SECONDS_MAX

    @property
    def is_spent(self) -> bool:
        return self.records <= 0 or self.bytes <= 0 or time.monotonic() > self._until


def _begin(
    client: ClusterClient, query: Query, starts: dict[TopicPartition, int], ends: dict[TopicPartition, int]
) -> dict[TopicPartition, int]:
    match query.start:
        case From.OFFSET:
            return {tp: min(max(query.offset, start), ends[tp]) for tp, start in starts.items()}
        case From.TIME:
            found = list_offsets(client, dict.fromkeys(starts, query.time_ms))
            return {tp: ends[tp] if (at := found[tp].offset) is None else at for tp in starts}
        case _:
            return starts


def _oldest(
    client: ClusterClient, query: Query, begin: dict[TopicPartition, int], ends: dict[TopicPartition, int]
) -> Found:
    limit = query.limit
    found = scan(client, begin, ends, query, limit, Budget())
    found.records.sort(key=lambda f: (f.record.timestamp, f.partition, f.record.offset))
    resume = found.reached
    for item in reversed(found.records[limit:]):
        resume[item.partition] = min(resume[item.partition], item.record.offset)
    is_end = all(resume[tp.partition] >= end for tp, end in ends.items())
    shown = tuple(found.records[:limit])
    return Found(shown, found.scanned, len(shown) >= limit or is_end, None if is_end else resume)


def _newest(
    client: ClusterClient, query: Query, starts: dict[TopicPartition, int], upper: dict[TopicPartition, int]
) -> Found:
    """Steps back from the end, further each time, until enough is found. The first step is small: records may be
    large, and a step that the limits interrupt has not seen the newest of its records."""
    budget = Budget()
    step = _FIRST_STEP
    found: list[SeenRecord] = []
    scanned = 0
    while len(found) < query.limit and any(upper[tp] > starts[tp] for tp in upper) and not budget.is_spent:
        step = max(1, min(step, budget.records // len(upper)))
        lower = {tp: max(starts[tp], upper[tp] - step) for tp in upper}
        read = scan(client, lower, upper, query, SCANNED_RECORDS_MAX, budget)
        scanned += read.scanned
        done = {tp for tp in upper if read.reached[tp.partition] >= upper[tp]}
        if not done and not found:
            done = set(upper)  # one step is more than the limits allow: some records are better than none
        whole = {tp.partition for tp in done}
        found += [item for item in read.records if item.partition in whole]
        upper = {tp: lower[tp] if tp in done else upper[tp] for tp in upper}
        step *= 4
    found.sort(key=lambda f: (f.record.timestamp, f.record.offset), reverse=True)
    resume = {tp.partition: offset for tp, offset in upper.items()}
    for item in found[query.limit :]:
        resume[item.partition] = max(resume[item.partition], item.record.offset + 1)
    is_end = all(resume[tp.partition] <= start for tp, start in starts.items())
    shown = tuple(found[: query.limit])
    return Found(shown, scanned, len(shown) >= query.limit or is_end, None if is_end else resume)


@dataclass(slots=True)
class Scan:
    records: list[SeenRecord]
    scanned: int
    reached: dict[int, int]
    """Offset of each partition up to which records were searched."""


def scan(
    client: ClusterClient,
    begin: dict[TopicPartition, int],
    ends: dict[TopicPartition, int],
    query: Query,
    enough: int,
    budget: Budget,
) -> Scan:
    """Read from `begin` to `ends`, until enough records fit the filter or the budget is spent."""
    reached = {tp.partition: ends[tp] for tp in begin}
    positions = {tp: offset for tp, offset in begin.items() if offset < ends[tp]}
    options = FetchOptions(max_wait_ms=200, max_bytes=_POLL_BYTES, partition_max_bytes=_PARTITION_BYTES)
    reader = RecordReader(client, positions, options)
    found: list[SeenRecord] = []
    scanned = 0
    while reader.positions and len(found) < enough and not budget.is_spent:
        for fetched in reader.poll():
            budget.bytes -= len(fetched.data)
            for record in records_in(fetched):
                if record.offset >= ends[fetched.tp]:
                    break
                scanned += 1
                budget.records -= 1
                seen = SeenRecord(fetched.tp.partition, record, query.decoder)
                if query.filter(seen):
                    found.append(seen)
        for tp in [tp for tp, position in reader.positions.items() if position >= ends[tp]]:
            reader.stop(tp)
    reached |= {tp.partition: position for tp, position in reader.positions.items()}
    return Scan(found, scanned, reached)


def offsets_when(client: ClusterClient, partitions: Sequence[TopicPartition], when: int) -> dict[TopicPartition, int]:
    return {tp: found.offset or 0 for tp, found in list_offsets(client, dict.fromkeys(partitions, when)).items()}
