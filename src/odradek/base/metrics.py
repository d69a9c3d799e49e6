"""Counters and timings, cheap enough for every request.

The data path adds to plain integers and bumps one bucket per timing. Names, labels and quantiles are made only when
somebody asks (`Registry.collect`), so an unobserved broker pays next to nothing. Increments are not atomic across
threads: under a race a metric may miss a count, never more than that.

Names follow the usual rules of the JMX exporter for Kafka, so that existing dashboards find them:
`kafka_server_brokertopicmetrics_messagesin_total{topic="t"}`, `kafka_network_requestmetrics_totaltimems{request=…}`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
_SUB_BITS = 3  # eight buckets per power of two: a quantile is right within 7 %


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    kind: str  # counter, gauge or unknown
    value: float
    labels: Mapping[str, str]


class Counter:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


class Timing:
    """A distribution of durations in nanoseconds, kept as logarithmic buckets of microseconds."""

    __slots__ = ("_buckets", "count", "total_ns")

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self.count = 0
        self.total_ns = 0

    def record(self, ns: int) -> None:
        self.count += 1
        self.total_ns += ns
        us = ns // 1000
        shift = us.bit_length() - _SUB_BITS - 1
        bucket = us if shift <= 0 else (shift << _SUB_BITS) + (us >> shift)
        self._buckets[bucket] = self._buckets.get(bucket, 0) + 1

    def quantile_ms(self, q: float) -> float:
        buckets = sorted(self._buckets.copy().items())
        rank = q * sum(n for _, n in buckets)
        for bucket, n in buckets:
            rank -= n
            if rank <= 0:
                return _upper_us(bucket) / 1000
        return 0.0


def _upper_us(bucket: int) -> int:
    shift = (bucket >> _SUB_BITS) - 1
    return bucket if shift <= 0 else ((bucket - (shift << _SUB_BITS)) + 1 << shift) - 1


class Registry:
    """Where the parts of a broker say what can be measured of them. Sources are asked only at a scrape."""

    def __init__(self) -> None:
        self._sources: list[Callable[[], Iterable[Sample]]] = []

    def add(self, source: Callable[[], Iterable[Sample]]) -> None:
        self._sources.append(source)

    def gauge(self, name: str, value: Callable[[], float]) -> None:
        self.add(lambda: [Sample(name, "gauge", value(), {})])

    def collect(self) -> Iterable[Sample]:
        for source in self._sources:
            yield from source()


def timing_samples(name: str, timing: Timing, labels: Mapping[str, str]) -> Iterable[Sample]:
    """A timing as the JMX exporter shows Kafka's histograms: a count, and one value per quantile."""
    yield Sample(f"{name}_count", "unknown", timing.count, labels)
    yield Sample(f"{name}_sum", "unknown", timing.total_ns / 1e6, labels)
    for q in QUANTILES:
        yield Sample(name, "gauge", timing.quantile_ms(q), {**labels, "quantile": str(q)})
