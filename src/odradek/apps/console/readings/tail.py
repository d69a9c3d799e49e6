"""Live tail: the newest records of a topic as they are written, filtered. A topic that is written faster than it can be
shown is skipped through, and the skipped records are counted."""

from collections.abc import Mapping
from dataclasses import dataclass

from odradek.apps.console.readings.records import LIMIT, Budget, Query, offsets_when, scan
from odradek.apps.records.filters import SeenRecord
from odradek.base.clock import SYSTEM_CLOCK
from odradek.client.cluster_client import ClusterClient
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.list_offsets import LATEST

_AT_ONCE_MAX = 2_000
_STALE_MS = 15_000


@dataclass(frozen=True, slots=True)
class TailState:
    at_ms: int
    positions: Mapping[TopicPartition, int]
    records: tuple[SeenRecord, ...] = ()
    """The newest first."""
    scanned: int = 0
    skipped: int = 0


def read_tail(client: ClusterClient, before: TailState | None, query: Query) -> TailState:
    now = SYSTEM_CLOCK.now_ms()
    topic = client.topic(query.topic)
    held = [
        TopicPartition(topic.name, p.partition)
        for p in topic.partitions
        if p.is_available and query.partition in (None, p.partition)
    ]
    ends = offsets_when(client, held, LATEST)
    if before is None or now - before.at_ms > _STALE_MS:  # no page was open meanwhile: begin anew
        return TailState(now, ends, before.records if before else ())
    each_max = max(1, _AT_ONCE_MAX // max(1, len(held)))
    begin = {tp: max(min(before.positions.get(tp, 0), end), end - each_max) for tp, end in ends.items()}
    skipped = sum(max(0, begin[tp] - before.positions.get(tp, 0)) for tp in begin)
    found = scan(client, begin, ends, query, _AT_ONCE_MAX, Budget(_AT_ONCE_MAX))
    found.records.sort(key=lambda seen: (seen.record.timestamp, seen.partition, seen.record.offset), reverse=True)
    positions = {tp: found.reached[tp.partition] for tp in ends}
    records = (*found.records, *before.records)[:LIMIT]
    return TailState(now, positions, records, before.scanned + found.scanned, before.skipped + skipped)
