"""Balancing of brokers, one move at a time; each move reduces the difference, so that few are needed. Pure."""

import heapq
from collections import deque
from collections.abc import Iterator
from math import ceil, floor

from odradek.apps.reassign.core.layout import Layout
from odradek.model.topology import TopicPartition

DISK_TOLERANCE = 0.1
"""Share of the mean within which disks count as equal, because moves are expensive."""


def balance_replicas(layout: Layout) -> None:
    """Move replicas until no broker has two more than another that could take one of them."""
    while steps := _next_replicas(layout):
        for step in steps:
            layout.move(*step)


def _next_replicas(layout: Layout) -> list[tuple[TopicPartition, int, int]]:
    """Choose replicas to move from the fullest to the emptiest possible broker; so few that none moves back later."""
    mean = sum(layout.counts[broker] for broker in layout.may_receive) / max(1, len(layout.may_receive))
    for source, target in _pairs(layout, layout.counts):
        more, fewer = layout.counts[source], layout.counts[target]
        if more - fewer < 2:
            continue
        count = max(1, min(more - ceil(mean), floor(mean) - fewer))
        chosen = heapq.nsmallest(count, _by_crowdedness(layout, source, target))
        if chosen:
            return [(tp, source, target) for _, _, tp in chosen]
    return []


def _by_crowdedness(layout: Layout, source: int, target: int) -> Iterator[tuple[int, int, TopicPartition]]:
    """Prefer a topic that has many replicas there and few here, counting earlier moves; and a small replica over a
    large one.
    """
    by_topic: dict[str, list[tuple[int, TopicPartition]]] = {}
    for tp in _movable(layout, source, target):
        by_topic.setdefault(tp.topic, []).append((layout.sizes[tp], tp))
    for topic, candidates in by_topic.items():
        crowded = layout.of_topic[target, topic] - layout.of_topic[source, topic]
        for gone, (size, tp) in enumerate(sorted(candidates)):
            yield crowded + 2 * gone, size, tp


def balance_disks(layout: Layout) -> None:
    """Move replicas until the fullest and the emptiest disk are within the tolerance, or no move helps."""
    steps_max = sum(map(len, layout.replicas.values()))
    for _ in range(steps_max):
        step = _next_bytes(layout)
        if step is None:
            return
        layout.move(*step)


def _next_bytes(layout: Layout) -> tuple[TopicPartition, int, int] | None:
    """Choose the partition whose size is closest to half of the difference."""
    mean = sum(layout.bytes[broker] for broker in layout.may_receive) / max(1, len(layout.may_receive))
    for source, target in _pairs(layout, layout.bytes):
        gap = layout.bytes[source] - layout.bytes[target]
        if gap <= DISK_TOLERANCE * mean:
            return None
        fitting = [(abs(size - gap / 2), tp) for tp in layout.held_by[source] if 0 < (size := layout.sizes[tp]) < gap]
        heapq.heapify(fitting)
        while fitting:
            _, tp = heapq.heappop(fitting)
            if _may_move(layout, tp, source, target):
                return tp, source, target
    return None


def _pairs(layout: Layout, load: dict[int, int]) -> Iterator[tuple[int, int]]:
    """Yield pairs (fuller, emptier), the greatest difference first."""
    brokers = sorted(layout.may_receive)
    gaps = [(load[a] - load[b], a, b) for a in brokers for b in brokers if load[a] > load[b]]
    for _, source, target in sorted(gaps, key=lambda gap: (-gap[0], gap[1:])):
        yield source, target


def _movable(layout: Layout, source: int, target: int) -> Iterator[TopicPartition]:
    return (tp for tp in layout.held_by[source] if _may_move(layout, tp, source, target))


def _may_move(layout: Layout, tp: TopicPartition, source: int, target: int) -> bool:
    return target not in layout.replicas[tp] and layout.keeps_racks(tp, source, target)


# --- leaders -----------------------------------------------------------------------------------------------------


def balance_leaders(layout: Layout) -> None:
    """Change the preferred leaders only; nothing is copied.

    Where the fullest and the emptiest share no partition, the leadership goes by way of others: fullest → a → emptiest.
    """
    while (chain := _chain_of_leaders(layout)) is not None:
        for tp, broker in chain:
            layout.prefer(tp, broker)


def _chain_of_leaders(layout: Layout) -> list[tuple[TopicPartition, int]] | None:
    """Find (partition, new preferred leader) from a broker to one that leads at least two fewer."""
    leads = layout.preferred()
    led: dict[int, list[TopicPartition]] = {}
    for tp, held in layout.replicas.items():
        led.setdefault(held[0], []).append(tp)
    for start in sorted(led, key=lambda broker: (-leads[broker], broker)):
        came: dict[int, tuple[int, TopicPartition]] = {}
        queue = deque([start])
        while queue:
            broker = queue.popleft()
            for tp in led.get(broker, ()):
                for other in layout.replicas[tp][1:]:
                    if other == start or other in came or other not in layout.may_receive:
                        continue
                    came[other] = broker, tp
                    queue.append(other)
                    if leads[start] - leads[other] >= 2:
                        return _way(came, start, other)
    return None


def _way(came: dict[int, tuple[int, TopicPartition]], start: int, end: int) -> list[tuple[TopicPartition, int]]:
    way = []
    broker = end
    while broker != start:
        before, tp = came[broker]
        way.append((tp, broker))
        broker = before
    return way
