"""Retention: selects the oldest segments that may be deleted. Pure: it uses no clock and no files.

Kafka's three reasons, each looking from the oldest segment on until one must stay: its youngest record is older than
`retention.ms`; the log is larger than `retention.bytes` by at least that segment; all its records lie before the log
start offset. Nothing at or above the high watermark goes. A compacted topic that doesn't also delete loses only what
lies before its start.
"""

from collections.abc import Callable, Sequence

from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.files.segment import Segment


def expired_count(
    segments: Sequence[Segment],
    config: LogConfig,
    *,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    now_ms: int,
) -> int:
    """Return the number of segments to delete from the front. It may be all of them: then the log needs a new one."""

    def leading(may_go: Callable[[int], bool]) -> int:
        count = 0
        for slot, segment in enumerate(segments):
            is_last = slot + 1 == len(segments)
            end = log_end_offset if is_last else segments[slot + 1].base_offset
            if end > high_watermark or (is_last and not segment.size) or not may_go(slot):
                break
            count += 1
        return count

    counts = [leading(lambda slot: slot + 1 < len(segments) and segments[slot + 1].base_offset <= log_start_offset)]
    if config.deletes and config.retention_ms >= 0:
        counts.append(leading(lambda slot: now_ms - segments[slot].age_timestamp > config.retention_ms))
    if config.deletes and config.retention_bytes >= 0:
        counts.append(leading(_larger_than(segments, config.retention_bytes)))
    return max(counts)


def _larger_than(segments: Sequence[Segment], retention_bytes: int) -> Callable[[int], bool]:
    excess = sum(segment.size for segment in segments) - retention_bytes
    sizes_up_to = []
    total = 0
    for segment in segments:
        total += segment.size
        sizes_up_to.append(total)
    return lambda slot: sizes_up_to[slot] <= excess
