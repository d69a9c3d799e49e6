"""The partitions that a member reads now, and how far it has read them.

Two threads meet here: the one that polls, and the one that rebalances. A revocation waits for the present poll and
prevents the next one: revoked partitions are read no further.
"""

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from odradek.model.topology import TopicPartition


class OwnedPartitions:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._unclaimed = threading.Event()
        self._unclaimed.set()
        self._positions: dict[TopicPartition, int | None] = {}

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        return frozenset(dict(self._positions))

    def positions(self) -> dict[TopicPartition, int]:
        """Positions of the partitions that were started."""
        return {tp: position for tp, position in dict(self._positions).items() if position is not None}

    @contextmanager
    def reading(self, patience_s: float) -> Iterator[dict[TopicPartition, int | None] | None]:
        """Provide the positions, for the caller to read from and to advance; None if a rebalance keeps them for too
        long.

        A position of None is not known yet.
        """
        if not self._unclaimed.wait(patience_s) or not self._lock.acquire(timeout=patience_s):
            yield None
            return
        try:
            yield self._positions
        finally:
            self._lock.release()

    def take_away(self, partitions: Collection[TopicPartition] | None = None) -> dict[TopicPartition, int]:
        """Stop reading these partitions, or all. Return the positions of partitions that were started."""
        with self._changing():
            taken = self.partitions if partitions is None else self.partitions & frozenset(partitions)
            stopped = {tp: self._positions.pop(tp) for tp in taken}
            return {tp: position for tp, position in stopped.items() if position is not None}

    def add(self, positions: Mapping[TopicPartition, int | None]) -> None:
        with self._changing():
            self._positions |= positions

    @contextmanager
    def _changing(self) -> Iterator[None]:
        self._unclaimed.clear()
        try:
            with self._lock:
                yield
        finally:
            self._unclaimed.set()
