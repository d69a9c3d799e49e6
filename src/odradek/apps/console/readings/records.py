"""Records of a topic, from an offset, a time or the end on, filtered, within limits.

A filter is data: where to look, how to compare, what for. Nothing that is typed is ever run.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from odradek.client.cluster_client import ClusterClient, unknown_partition
from odradek.client.partition_offsets import list_offsets
from odradek.client.record_reader import RecordReader, records_in
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.list_offsets import EARLIEST, LATEST
from odradek.protocol.records import Record

LIMIT = 50
_FIRST_STEP = 4
SCANNED_RECORDS_MAX = 50_000
SCANNED_BYTES_MAX = 64 << 20
SCAN_SECONDS_MAX = 4.0
_PARTITION_BYTES = 256 << 10
_POLL_BYTES = 4 << 20  # limits are looked at between two polls
_JSON_BYTES_MAX = 1 << 20


class From(StrEnum):
    NEWEST = "newest"
    OLDEST = "oldest"
    OFFSET = "offset"
    TIME = "time"


class Part(StrEnum):
    ANY = "any"
    KEY = "key"
    VALUE = "value"
    HEADER = "header"
    FIELD = "field"


@dataclass(frozen=True, slots=True)
class Filter:
    part: Part = Part.ANY
    name: str = ""
    """Of the header, or the path of the JSON field: `customer.city`."""
    equals: bool = False
    text: str = ""

    def fits(self, record: Record) -> bool:
        if not self.text and not (self.part in (Part.HEADER, Part.FIELD) and self.name):
            return True
        return any(self._compares(found) for found in self._found(record))

    def _found(self, record: Record) -> Iterable[bytes]:
        match self.part:
            case Part.KEY:
                return [record.key or b""]
            case Part.VALUE:
                return [record.value or b""]
            case Part.HEADER:
                return [value or b"" for name, value in record.headers if name == self.name]
            case Part.FIELD:
                return _field(record.value, self.name)
            case Part.ANY:
                headers = [part for name, value in record.headers for part in (name.encode(), value or b"")]
                return [record.key or b"", record.value or b"", *headers]

    def _compares(self, found: bytes) -> bool:
        wanted = self.text.encode()
        return found == wanted if self.equals else wanted.lower() in found.lower()


@dataclass(frozen=True, slots=True)
class Query:
    topic: str
    partition: int | None = None
    start: From = From.NEWEST
    offset: int = 0
    time_ms: int = 0
    filter: Filter = Filter()
    resume: Mapping[int, int] | None = None
    """Where an earlier look at the same ended, by partition."""


class FoundRecord(NamedTuple):
    partition: int
    record: Record


@dataclass(frozen=True, slots=True)
class Found:
    records: tuple[FoundRecord, ...]
    scanned: int
    is_complete: bool
    """Whether all was looked at that was asked for; False: a limit was reached first."""
    resume: Mapping[int, int] | None = None
    """Where to go on, by partition; None: there is no more."""


def browse(client: ClusterClient, query: Query) -> Found:
    topic = client.topic(query.topic)
    partitions = [TopicPartition(topic.name, p.partition) for p in topic.partitions if p.is_available]
    if query.partition is not None:
        wanted = TopicPartition(topic.name, query.partition)
        if wanted.partition not in [p.partition for p in topic.partitions]:
            raise unknown_partition(wanted, len(topic.partitions))
        partitions = [wanted]
    starts = _offsets(client, partitions, EARLIEST)
    ends = _offsets(client, partitions, LATEST)
    resume = query.resume or {}
    if query.start is From.NEWEST:
        upper = {tp: max(starts[tp], min(resume.get(tp.partition, end), end)) for tp, end in ends.items()}
        return _newest(client, query.filter, starts, upper)
    begin = _begin(client, query, starts, ends)
    begin = {tp: max(resume.get(tp.partition, offset), starts[tp]) for tp, offset in begin.items()}
    return _oldest(client, query.filter, begin, ends)


class _Budget:
    """Records and bytes that may still be read."""

    def __init__(self) -> None:
        self.records = SCANNED_RECORDS_MAX
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
    client: ClusterClient, wanted: Filter, begin: dict[TopicPartition, int], ends: dict[TopicPartition, int]
) -> Found:
    scan = _scan(client, begin, ends, wanted, LIMIT, _Budget())
    scan.found.sort(key=lambda f: (f.record.timestamp, f.partition, f.record.offset))
    resume = scan.reached
    for item in reversed(scan.found[LIMIT:]):
        resume[item.partition] = min(resume[item.partition], item.record.offset)
    is_end = all(resume[tp.partition] >= end for tp, end in ends.items())
    shown = tuple(scan.found[:LIMIT])
    return Found(shown, scan.scanned, len(shown) >= LIMIT or is_end, None if is_end else resume)


def _newest(
    client: ClusterClient, wanted: Filter, starts: dict[TopicPartition, int], upper: dict[TopicPartition, int]
) -> Found:
    """Steps back from the end, further each time, until enough is found. The first step is small: records may be
    large, and a step that the limits interrupt has not seen the newest of its records."""
    budget = _Budget()
    step = _FIRST_STEP
    found: list[FoundRecord] = []
    scanned = 0
    while len(found) < LIMIT and any(upper[tp] > starts[tp] for tp in upper) and not budget.is_spent:
        step = max(1, min(step, budget.records // len(upper)))
        lower = {tp: max(starts[tp], upper[tp] - step) for tp in upper}
        scan = _scan(client, lower, upper, wanted, SCANNED_RECORDS_MAX, budget)
        scanned += scan.scanned
        done = {tp for tp in upper if scan.reached[tp.partition] >= upper[tp]}
        if not done and not found:
            done = set(upper)  # one step is more than the limits allow: better some than none
        whole = {tp.partition for tp in done}
        found += [item for item in scan.found if item.partition in whole]
        upper = {tp: lower[tp] if tp in done else upper[tp] for tp in upper}
        step *= 4
    found.sort(key=lambda f: (f.record.timestamp, f.record.offset), reverse=True)
    resume = {tp.partition: offset for tp, offset in upper.items()}
    for item in found[LIMIT:]:
        resume[item.partition] = max(resume[item.partition], item.record.offset + 1)
    is_end = all(resume[tp.partition] <= start for tp, start in starts.items())
    shown = tuple(found[:LIMIT])
    return Found(shown, scanned, len(shown) >= LIMIT or is_end, None if is_end else resume)


@dataclass(slots=True)
class _Scan:
    found: list[FoundRecord]
    scanned: int
    reached: dict[int, int]
    """By partition, the offset before which everything was looked at."""


def _scan(
    client: ClusterClient,
    begin: dict[TopicPartition, int],
    ends: dict[TopicPartition, int],
    wanted: Filter,
    enough: int,
    budget: _Budget,
) -> _Scan:
    reached = {tp.partition: ends[tp] for tp in begin}
    positions = {tp: offset for tp, offset in begin.items() if offset < ends[tp]}
    reader = RecordReader(
        client, positions, max_wait_ms=200, max_bytes=_POLL_BYTES, partition_max_bytes=_PARTITION_BYTES
    )
    found: list[FoundRecord] = []
    scanned = 0
    while reader.positions and len(found) < enough and not budget.is_spent:
        for fetched in reader.poll():
            budget.bytes -= len(fetched.data)
            for record in records_in(fetched):
                if record.offset >= ends[fetched.tp]:
                    break
                scanned += 1
                budget.records -= 1
                if wanted.fits(record):
                    found.append(FoundRecord(fetched.tp.partition, record))
        for tp in [tp for tp, position in reader.positions.items() if position >= ends[tp]]:
            reader.stop(tp)
    reached |= {tp.partition: position for tp, position in reader.positions.items()}
    return _Scan(found, scanned, reached)


def _offsets(client: ClusterClient, partitions: Sequence[TopicPartition], when: int) -> dict[TopicPartition, int]:
    return {tp: told.offset or 0 for tp, told in list_offsets(client, dict.fromkeys(partitions, when)).items()}


def _field(value: bytes | None, path: str) -> list[bytes]:
    """The values at that path of a JSON document; numbers in a path are places in a list."""
    if value is None or len(value) > _JSON_BYTES_MAX:
        return []
    try:
        found = json.loads(value)
        for step in path.split("."):
            found = found[int(step)] if isinstance(found, list) else found[step]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return []
    return [(found if isinstance(found, str) else json.dumps(found)).encode()]
