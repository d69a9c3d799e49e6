"""Events of a group's members, for measurements.

Called on the members' threads, often, from many at once: an observer must be quick and thread-safe.
"""

import threading
from collections import Counter
from collections.abc import Collection
from enum import Enum
from typing import Protocol

from odradek.model.topology import TopicPartition


class What(Enum):
    NOTIFIED = "a watch fired"
    DECIDED = "computed an assignment from the group as it saw it"
    REFUSED = "wanted to claim a partition that another owned"
    RETRIED = "an attempt to rebalance failed and will be repeated"
    GAVE_UP = "no more attempts: it owns nothing until the group changes again"
    OWNS = "began to read partitions"
    RELEASED = "stopped reading partitions"


class Observer(Protocol):
    def happened(self, member: str, what: What, partitions: Collection[TopicPartition] = (), view: int = 0) -> None:
        """`view` is the version of the group's list of members that a decision was made from."""

    def asked_zookeeper(self, *, reads: int = 0, writes: int = 0) -> None: ...

    def asked_broker(self) -> None: ...


class Tally:
    """Counts, and keeps nothing else."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts: Counter[What] = Counter()
        self.reads = self.writes = self.requests = 0

    def happened(self, member: str, what: What, partitions: Collection[TopicPartition] = (), view: int = 0) -> None:
        with self._lock:
            self.counts[what] += 1

    def asked_zookeeper(self, *, reads: int = 0, writes: int = 0) -> None:
        with self._lock:
            self.reads += reads
            self.writes += writes

    def asked_broker(self) -> None:
        with self._lock:
            self.requests += 1
