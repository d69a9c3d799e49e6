"""Offsets that open transactions of producers will commit to a group, or not. Pure.

A committed offset that follows a pending one in the log supersedes it: the transaction's outcome can't change it any
more. So only the order of records decides, as in a replay.
"""

from collections.abc import Iterable, Mapping

from odradek.broker.coordinator.groups.core.group_records import CommittedOffset
from odradek.model.topology import TopicPartition


class PendingOffsets:
    """Pending offsets by producer id: a producer has one open transaction at most. Each has its place in the order of
    the log."""

    __slots__ = ("_by_producer", "_count")

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[TopicPartition, tuple[int, CommittedOffset | None]]] = {}
        self._count = 0

    def __bool__(self) -> bool:
        return any(self._by_producer.values())

    @property
    def producers(self) -> set[int]:
        return set(self._by_producer)

    @property
    def partitions(self) -> set[TopicPartition]:
        return {tp for changes in self._by_producer.values() for tp in changes}

    def add(self, producer_id: int, changes: Mapping[TopicPartition, CommittedOffset | None]) -> None:
        self._count += 1
        pending = self._by_producer.setdefault(producer_id, {})
        pending.update((tp, (self._count, committed)) for tp, committed in changes.items())

    def supersede(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop pending offsets of partitions that have newer positions in the log, or are deleted."""
        for tp in partitions:
            self._drop_older(tp, self._count)

    def end(self, producer_id: int, *, committed: bool) -> dict[TopicPartition, CommittedOffset | None]:
        """End the producer's transaction; return the offsets that it commits."""
        changes = self._by_producer.pop(producer_id, {})
        if not committed:
            return {}
        for tp, (order, _) in changes.items():
            self._drop_older(tp, order)
        return {tp: position for tp, (_, position) in changes.items()}

    def _drop_older(self, tp: TopicPartition, order: int) -> None:
        for changes in self._by_producer.values():
            if tp in changes and changes[tp][0] <= order:
                del changes[tp]
