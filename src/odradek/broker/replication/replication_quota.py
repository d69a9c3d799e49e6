"""Replication throttles: the bytes per second that may be copied from and to this broker, and the throttled partitions.

The rates are the dynamic broker configs `leader.replication.throttled.rate` and `follower.replication.throttled.rate`;
the partitions come from the topic configs `….replication.throttled.replicas`. Only replicas that are catching up are
throttled: the caller passes whether the replica is in sync. Any thread.
"""

import threading
from collections.abc import Sequence

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.broker.quotas.core.sampled_rate import SampledRate
from odradek.model.topology import TopicPartition

UNLIMITED = 2**63 - 1
ALL_PARTITIONS = "*"


class ReplicationRate:
    """Bytes a second over the last windows. Any thread."""

    def __init__(self, window_ms: int, windows: int, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._rate = SampledRate(window_ms, windows, windows_min=1)

    def record(self, size: int) -> None:
        with self._lock:
            self._rate.record(size, self._clock.monotonic_ms())

    def per_second(self) -> float:
        with self._lock:
            return self._rate.per_second(self._clock.monotonic_ms())


class Throttle:
    """Throttle of one side: its rate, and the throttled partitions."""

    def __init__(self, broker_id: int, rate: ReplicationRate) -> None:
        self.limit = UNLIMITED
        """Bytes a second."""
        self._broker_id = broker_id
        self._rate = rate
        self._partitions: dict[str, frozenset[int] | None] = {}  # None: all of the topic

    def set_replicas(self, topic: str, replicas: Sequence[str]) -> None:
        """Set the throttled replicas of a topic: `*`, or partition:broker pairs, or none."""
        if not replicas:
            self._partitions.pop(topic, None)
        elif tuple(replicas) == (ALL_PARTITIONS,):
            self._partitions[topic] = None
        else:
            pairs = (pair.split(":") for pair in replicas)
            mine = frozenset(int(partition) for partition, broker in pairs if int(broker) == self._broker_id)
            self._partitions[topic] = mine

    @property
    def is_idle(self) -> bool:
        """True if nothing is throttled at any rate: the cheap answer."""
        return not self._partitions

    def covers(self, tp: TopicPartition) -> bool:
        partitions = self._partitions.get(tp.topic, frozenset())
        return partitions is None or tp.partition in partitions

    @property
    def is_exceeded(self) -> bool:
        return self.limit != UNLIMITED and self._rate.per_second() > self.limit

    def record(self, tp: TopicPartition, size: int) -> None:
        if self._partitions and self.covers(tp):
            self._rate.record(size)


class ReplicationQuotas:
    def __init__(self, broker_id: int, config: BrokerConfig, clock: Clock) -> None:
        window_ms = config.replication_quota_window_size_seconds * 1000
        windows = config.replication_quota_window_num
        self.leader = Throttle(broker_id, ReplicationRate(window_ms, windows, clock))
        self.follower = Throttle(broker_id, ReplicationRate(window_ms, windows, clock))

    def set_rates(self, leader: int | None, follower: int | None) -> None:
        """Set the rates of the dynamic broker configuration; None: no limit."""
        self.leader.limit = UNLIMITED if leader is None else leader
        self.follower.limit = UNLIMITED if follower is None else follower

    def set_topic(self, topic: str, leader_replicas: Sequence[str], follower_replicas: Sequence[str]) -> None:
        """Set the throttled replicas of a topic; two empty lists when the topic is deleted."""
        self.leader.set_replicas(topic, leader_replicas)
        self.follower.set_replicas(topic, follower_replicas)

    def leader_throttled(self, tp: TopicPartition, *, in_sync: bool) -> bool:
        """Return whether a follower's fetch gets no records of the partition for now."""
        return not in_sync and not self.leader.is_idle and self.leader.covers(tp) and self.leader.is_exceeded

    def record_leader(self, tp: TopicPartition, size: int) -> None:
        """Count bytes sent to a follower."""
        self.leader.record(tp, size)

    def follower_throttled(self, tp: TopicPartition, *, in_sync: bool) -> bool:
        """Return whether this broker leaves the partition out of its fetches for now."""
        return not in_sync and not self.follower.is_idle and self.follower.covers(tp) and self.follower.is_exceeded

    def record_follower(self, tp: TopicPartition, size: int) -> None:
        """Count bytes copied from a leader."""
        self.follower.record(tp, size)
