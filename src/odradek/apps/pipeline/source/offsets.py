"""Start and end offsets of a read: offset arithmetic over values, as Spark's connector does it. No cluster in here.

Offsets travel as JSON of the connector's own form, `{"topic": {"0": 23, "1": -2}}`, in options and checkpoints.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from odradek.apps.pipeline.source.errors import OptionError
from odradek.model.topology import TopicPartition

Offsets: TypeAlias = dict[TopicPartition, int]
OffsetsJson: TypeAlias = dict[str, dict[str, int]]
_FIRST_SHARE_MAX = 5


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The records of one partition with `start` <= offset < `end`."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def to_json(offsets: Mapping[TopicPartition, int]) -> OffsetsJson:
    found: OffsetsJson = {}
    for partition in sorted(offsets):
        found.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return found


def from_json(offsets: OffsetsJson) -> Offsets:
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in offsets.items()
        for partition, offset in partitions.items()
    }


def parse_offsets(option: str, text: str) -> Offsets:
    """Parse the offsets of an option, checked."""
    shape = 'JSON like {"topicA": {"0": 23, "1": 42}}'
    try:
        document = json.loads(text)
    except ValueError:
        raise OptionError(f"{option} takes {shape}, not {text!r}") from None
    if not isinstance(document, dict) or not all(isinstance(p, dict) for p in document.values()):
        raise OptionError(f"{option} takes {shape}, not {text!r}")
    if not all(
        partition.isdecimal() and isinstance(offset, int) and not isinstance(offset, bool)
        for partitions in document.values()
        for partition, offset in partitions.items()
    ):
        raise OptionError(f"{option}: partitions and offsets are whole numbers, as in {shape}; not {text!r}")
    return from_json(document)


def limited(start: Offsets, end: Offsets, max_records: int) -> Offsets:
    """Return an end at most about `max_records` after `start`, distributed by the waiting records of each partition.

    A partition with anything waiting moves by at least one record, so that none starves.
    """
    waiting = {p: size for p, end_offset in end.items() if (size := end_offset - start.get(p, end_offset)) > 0}
    total = sum(waiting.values())
    if total <= max_records:
        return end
    return {
        p: start[p] + max(1, max_records * waiting[p] // total) if p in waiting else end_offset
        for p, end_offset in end.items()
    }


def records_of_first_batch(start: Offsets, end: Offsets, max_records: int, first: int | None) -> int:
    """Records to read in the first batch after a start: few of many, so that the first rows come early.

    A batch has a cost of seconds while the JVM is cold, so a few times as many records are read at once.
    """
    waiting = sum(max(0, offset - start.get(p, offset)) for p, offset in end.items())
    return max_records if first is None or waiting <= _FIRST_SHARE_MAX * first else min(first, max_records)


def split_ranges(
    ranges: Iterable[OffsetRange], min_partitions: int | None, max_records: int | None = None
) -> list[OffsetRange]:
    """One range per Spark task: none above `max_records`, and the large ones cut further until there are enough."""
    wanted = [r for r in ranges if r.size > 0]
    if max_records is not None:
        wanted = [piece for r in wanted for piece in _cut(r, -(-r.size // max_records))]
    if min_partitions is None or len(wanted) >= min_partitions:
        return wanted
    total = sum(r.size for r in wanted)
    # Ranges too small to be cut get a task of their own; the others share the remaining tasks by size.
    small = [r for r in wanted if r.size * min_partitions <= total]
    shared_by, tasks_left = total - sum(r.size for r in small), min_partitions - len(small)
    pieces: list[OffsetRange] = []
    for r in wanted:
        pieces += _cut(r, 1 if r in small else max(1, min(r.size, round(r.size / shared_by * tasks_left))))
    return pieces


def packed_ranges(ranges: Iterable[OffsetRange], min_records: int | None) -> list[tuple[OffsetRange, ...]]:
    """Ranges by task: small ones, each of another partition, share a task until it has `min_records`."""
    tasks: list[tuple[OffsetRange, ...]] = []
    for each in ranges:
        last = tasks[-1] if tasks else ()
        is_open = min_records is not None and last and sum(r.size for r in last) + each.size <= min_records
        if is_open and each.partition not in {r.partition for r in last}:
            tasks[-1] = (*last, each)
        else:
            tasks.append((each,))
    return tasks


def _cut(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    """Equal parts of a range, in order."""
    cuts = [whole.start + whole.size * i // parts for i in range(parts + 1)]
    return [OffsetRange(whole.partition, a, b) for a, b in pairwise(cuts)]
