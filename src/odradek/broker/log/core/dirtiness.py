"""Dirty part of a log: its bounds, its ratio, and the choice of the next log to clean. Decisions over values.

    log start ≤ first dirty ≤ first uncleanable ≤ base offset of the active segment

Below the first dirty offset every key occurs once already. From the first uncleanable offset on nothing is changed: the
active segment, uncommitted records, records of open transactions, and segments younger than `min.compaction.lag.ms`; a
segment is cleaned whole or not at all. The dirty ratio is cleanable bytes / (clean + cleanable bytes); a log is cleaned
when it is above `min.cleanable.dirty.ratio`, or as soon as a dirty record is older than `max.compaction.lag.ms`.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from odradek.base.value_classes import dataclass
from odradek.broker.log.core.config import MAX_INT64, LogConfig
from odradek.broker.log.files.segment import Segment
from odradek.format.segment_files import MAX_RELATIVE_OFFSET

INDEX_ENTRY_BYTES = 8
TIME_INDEX_ENTRY_BYTES = 12


@dataclass(frozen=True, slots=True)
class Dirtiness:
    first_dirty: int
    first_uncleanable: int
    clean_bytes: int
    cleanable_bytes: int
    overdue_ms: int
    """Time since the oldest dirty record exceeded `max.compaction.lag.ms`; 0: it has not."""

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_worth_it(self, min_ratio: float) -> bool:
        return (self.overdue_ms > 0 and self.cleanable_bytes > 0) or self.ratio > min_ratio


def first_dirty_offset(checkpointed: int | None, log_start_offset: int, log_end_offset: int) -> int:
    """The checkpointed offset if it is in the log's range; otherwise the start of the log: all of it is dirty."""
    if checkpointed is None or not log_start_offset <= checkpointed <= log_end_offset:
        return log_start_offset
    return checkpointed


def assess(
    segments: Sequence[Segment], config: LogConfig, *, first_dirty: int, last_stable_offset: int, now_ms: int
) -> Dirtiness:
    """`segments` are the log's, the active one last."""
    active = segments[-1]
    dirty = _from(segments[:-1], first_dirty) if first_dirty < active.base_offset else segments[:0]
    limit = min(last_stable_offset, active.base_offset)
    if config.min_compaction_lag_ms > 0:
        young = (segment for segment in dirty if segment.age_timestamp > now_ms - config.min_compaction_lag_ms)
        limit = min(limit, next((segment.base_offset for segment in young), limit))
    limit = max(first_dirty, limit)
    uncleanable = next(iter(_from(segments[:-1], limit)), active) if limit < active.base_offset else active
    end = uncleanable.base_offset
    return Dirtiness(
        first_dirty,
        end,
        sum(segment.size for segment in segments if segment.base_offset < first_dirty),
        sum(segment.size for segment in dirty if first_dirty < end and segment.base_offset < end),
        _overdue_ms(dirty, config.max_compaction_lag_ms, now_ms),
    )


def filthiest(candidates: Iterable[tuple[Dirtiness, LogConfig]]) -> int | None:
    """Return the place of the log to clean next, if any is dirty enough."""
    best, best_ratio = None, -1.0
    for slot, (dirtiness, config) in enumerate(candidates):
        if dirtiness.is_worth_it(config.min_cleanable_dirty_ratio) and dirtiness.ratio > best_ratio:
            best, best_ratio = slot, dirtiness.ratio
    return best


def group_segments(segments: Sequence[Segment], config: LogConfig, first_uncleanable: int) -> list[tuple[Segment, ...]]:
    """Groups of adjacent segments whose bytes and index entries fit into one segment even if no record is removed."""
    groups: list[tuple[Segment, ...]] = []
    group: list[Segment] = []
    for slot, segment in enumerate(segments):
        last_offset = (segments[slot + 1].base_offset if slot + 1 < len(segments) else first_uncleanable) - 1
        if group and not _fits(group, segment, last_offset, config):
            groups.append(tuple(group))
            group = []
        group.append(segment)
    if group:
        groups.append(tuple(group))
    return groups


def _fits(group: Sequence[Segment], segment: Segment, last_offset: int, config: LogConfig) -> bool:
    together = (*group, segment)
    return (
        sum(member.size for member in together) <= config.segment_bytes
        and sum(len(member.index) for member in together) * INDEX_ENTRY_BYTES <= config.segment_index_bytes
        and sum(len(member.time_index) for member in together) * TIME_INDEX_ENTRY_BYTES <= config.segment_index_bytes
        and (not segment.size or last_offset - group[0].base_offset <= MAX_RELATIVE_OFFSET)
    )


def _from(segments: Sequence[Segment], offset: int) -> Sequence[Segment]:
    """Segments from the one that has the offset on."""
    return segments[max(bisect_right(segments, offset, key=_base_of) - 1, 0) :]


def _overdue_ms(dirty: Sequence[Segment], max_lag_ms: int, now_ms: int) -> int:
    if max_lag_ms == MAX_INT64:
        return 0
    oldest = min((segment.first_timestamp for segment in dirty if segment.first_timestamp > 0), default=now_ms)
    return max(0, now_ms - max_lag_ms - oldest)


def _base_of(segment: Segment) -> int:
    return segment.base_offset
