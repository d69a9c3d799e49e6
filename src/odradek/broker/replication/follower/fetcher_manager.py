"""Assignment of followed partitions to replica fetcher threads.

Up to `num.replica.fetchers` loops fetch from one leader, each with its own thread and connection. A partition goes to
one of them by its hash, as in Apache Kafka. Loops begin with their first partition, and end when they have had none for
a while. Any thread may call; none of the methods waits for a loop but `stop`.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.broker.replication.follower.fetch_assignment import FetchAssignment, FetchContext, FindFollower
from odradek.broker.replication.follower.replica_fetcher_thread import ReplicaFetcherThread
from odradek.broker.replication.replication_quota import ReplicationQuotas
from odradek.model.topology import Endpoint, TopicPartition

_STOP_MS = 10_000  # a loop may be about to connect to a host that doesn't answer; it ends later then


class LoopKey(NamedTuple):
    leader_id: int
    endpoint: Endpoint
    number: int


class ReplicaFetcherManager:
    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        find: FindFollower,
        clock: Clock,
        on_advance: Callable[[TopicPartition], None],
        *,
        broker_epoch: Callable[[], int],
        quotas: ReplicationQuotas,
    ) -> None:
        """`find` returns None for a partition that is no longer hosted. `on_advance` is called when a high watermark
        moved."""
        self._context = FetchContext(broker_id, config, find, clock, on_advance, broker_epoch, quotas)
        self._loops_per_leader = config.num_replica_fetchers
        self._lock = threading.Lock()
        self._loops: dict[LoopKey, ReplicaFetcherThread] = {}
        self._loop_of: dict[TopicPartition, ReplicaFetcherThread] = {}
        self._orders: dict[TopicPartition, FetchAssignment] = {}
        self._is_stopped = False

    def reconfigure(self, config: BrokerConfig) -> None:
        """Change the number of fetcher threads, and redistribute the partitions."""
        with self._lock:
            if config.num_replica_fetchers == self._loops_per_leader:
                return
            self._loops_per_leader = config.num_replica_fetchers
            self._follow(self._orders.copy())

    def follow(self, orders: Mapping[TopicPartition, FetchAssignment]) -> None:
        """Copy these partitions from now on. An assignment replaces the earlier one of the same partition."""
        with self._lock:
            self._follow(orders)

    def _follow(self, orders: Mapping[TopicPartition, FetchAssignment]) -> None:
        if self._is_stopped:
            return
        by_loop: defaultdict[LoopKey, dict[TopicPartition, FetchAssignment]] = defaultdict(dict)
        for tp, order in orders.items():
            number = loop_number(tp, self._loops_per_leader)
            by_loop[LoopKey(order.leader_id, order.endpoint, number)][tp] = order
        for key, ours in by_loop.items():
            loop = self._loops.get(key) or self._start(key)
            self._leave(tp for tp in ours if self._loop_of.get(tp) is not loop)
            self._loop_of |= dict.fromkeys(ours, loop)
            self._orders |= ours
            loop.follow(ours)

    def unfollow(self, tps: Iterable[TopicPartition]) -> None:
        with self._lock:
            self._leave(tps)

    def stop(self) -> None:
        with self._lock:
            self._is_stopped = True
            loops = [*self._loops.values()]
            self._loops.clear()
            self._loop_of.clear()
            self._orders.clear()
        for loop in loops:
            loop.begin_stop()
        clock = self._context.clock
        deadline = clock.monotonic_ms() + _STOP_MS
        for loop in loops:
            loop.join(max(deadline - clock.monotonic_ms(), 0) / 1000)

    def _start(self, key: LoopKey) -> ReplicaFetcherThread:
        loop = ReplicaFetcherThread(self._context, key.leader_id, key.endpoint, key.number, self._may_end)
        loop.start()  # which may fail: a loop that doesn't run takes no orders
        self._loops[key] = loop
        return loop

    def _leave(self, tps: Iterable[TopicPartition]) -> None:
        by_loop: defaultdict[ReplicaFetcherThread, list[TopicPartition]] = defaultdict(list)
        for tp in tps:
            self._orders.pop(tp, None)
            if (loop := self._loop_of.pop(tp, None)) is not None:
                by_loop[loop].append(tp)
        for loop, leaving in by_loop.items():
            loop.unfollow(leaving)

    def _may_end(self, loop: ReplicaFetcherThread) -> bool:
        """Return True if an idle fetcher thread may end; after that it gets no partition any more."""
        with self._lock:
            if loop in self._loop_of.values():
                return False
            self._loops = {key: other for key, other in self._loops.items() if other is not loop}
            return True


def loop_number(tp: TopicPartition, loops: int) -> int:
    """Java's hash of the topic's name, so that a partition has the place that Apache Kafka gives it."""
    hashed = 0
    for character in tp.topic:
        hashed = (31 * hashed + ord(character)) & 0xFFFFFFFF
    mixed = (31 * hashed + tp.partition) & 0xFFFFFFFF
    signed = mixed - (1 << 32) if mixed & 0x80000000 else mixed
    return (0 if signed == -(1 << 31) else abs(signed)) % loops
