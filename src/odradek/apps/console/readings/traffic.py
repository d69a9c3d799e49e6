"""Traffic: records per second from the high watermarks, bytes per second from the brokers' metrics.

Each reading is compared with the one before; the last minutes are kept for the plots.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from odradek.apps.console.readings.offsets import high_watermarks
from odradek.apps.console.readings.scrape import Counters, Endpoint, find_endpoints, scrape
from odradek.base.clock import SYSTEM_CLOCK
from odradek.client.cluster_client import ClusterClient, TopicState
from odradek.model.topology import TopicPartition

POINTS_MAX = 120


@dataclass(frozen=True, slots=True)
class Point:
    at_ms: int
    records: Mapping[int, float]
    """Per second, by the broker that leads."""
    bytes_in: Mapping[int, float]
    bytes_out: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class TrafficState:
    at_ms: int
    ends: Mapping[TopicPartition, int]
    points: tuple[Point, ...] = ()
    topic_rates: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Records per second, the last ones last."""
    endpoints: Mapping[int, Endpoint | None] = field(default_factory=dict)
    counters: Mapping[int, Counters] = field(default_factory=dict)

    @property
    def has_metrics(self) -> bool:
        return bool(self.counters)


def read_traffic(client: ClusterClient, before: TrafficState | None, topics: Mapping[str, TopicState]) -> TrafficState:
    ends = high_watermarks(client, topics.values())
    now = SYSTEM_CLOCK.now_ms()
    endpoints = find_endpoints(client, before.endpoints if before else {})
    scraped = {broker: scrape(endpoint) for broker, endpoint in endpoints.items() if endpoint is not None}
    counters = {broker: counter for broker, counter in scraped.items() if counter is not None}
    if before is None or now <= before.at_ms:
        return TrafficState(now, ends, endpoints=endpoints, counters=counters)
    seconds = (now - before.at_ms) / 1000
    by_topic: dict[str, float] = dict.fromkeys(topics, 0.0)
    by_leader: dict[int, float] = dict.fromkeys(endpoints, 0.0)
    leaders = {(t.name, p.partition): p.leader for t in topics.values() for p in t.partitions}
    for tp, grown in growth(before.ends, ends):
        by_topic[tp.topic] += grown / seconds
        leader = leaders[tp.topic, tp.partition]
        by_leader[leader] = by_leader.get(leader, 0.0) + grown / seconds
    known = {broker: (before.counters[broker], now_) for broker, now_ in counters.items() if broker in before.counters}
    point = Point(
        now,
        by_leader,
        {broker: max(0.0, b.bytes_in - a.bytes_in) / seconds for broker, (a, b) in known.items()},
        {broker: max(0.0, b.bytes_out - a.bytes_out) / seconds for broker, (a, b) in known.items()},
    )
    rates = {name: (*before.topic_rates.get(name, ())[1 - POINTS_MAX :], rate) for name, rate in by_topic.items()}
    return TrafficState(now, ends, (*before.points[1 - POINTS_MAX :], point), rates, endpoints, counters)


def growth(
    before: Mapping[TopicPartition, int], now: Mapping[TopicPartition, int]
) -> Iterator[tuple[TopicPartition, int]]:
    """Growth of a log; none for one that was truncated or created anew."""
    for tp, end in now.items():
        if tp in before and end > before[tp]:
            yield tp, end - before[tp]
