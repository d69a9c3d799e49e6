"""Metrics of a broker, cheap enough for every request.

The data path adds to plain integers and remembers a few times. Names, labels and quantiles are computed only when they
are read (`Registry.collect`), so a broker without monitoring pays almost nothing. Increments are not atomic across
threads: under a race a metric may miss a count, never more than that.

Names follow the usual rules of the JMX exporter for Kafka, so that existing dashboards find them:
`kafka_server_brokertopicmetrics_messagesin_total{topic="t"}`, `kafka_network_requestmetrics_totaltimems{request=…}`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from odradek.base.value_classes import dataclass

QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    kind: str  # counter, gauge or unknown
    value: float
    labels: Mapping[str, str]


class Registry:
    """Registry of a broker's metrics, filled by its parts. Sources are asked only at a scrape."""

    def __init__(self) -> None:
        self._sources: list[tuple[Callable[[], Iterable[Sample]], frozenset[str]]] = []

    def add(self, source: Callable[[], Iterable[Sample]], names: Collection[str] = ()) -> None:
        """Add a source; one with `names` is skipped when other names are wanted."""
        self._sources.append((source, frozenset(names)))

    def gauge(self, name: str, value: Callable[[], float]) -> None:
        self.add(lambda: [Sample(name, "gauge", value(), {})], [name])

    def collect(self, wanted: Collection[str] = ()) -> Iterable[Sample]:
        """Return all samples, or those with `wanted` names."""
        for source, names in self._sources:
            if not wanted:
                yield from source()
            elif not names or not names.isdisjoint(wanted):
                yield from (sample for sample in source() if sample.name in wanted)


def histogram_samples(name: str, recent_ns: Sequence[int], count: int, labels: Mapping[str, str]) -> Iterable[Sample]:
    """Durations as the JMX exporter shows Kafka's histograms: the total count, and quantiles of recent ones."""
    yield Sample(f"{name}_count", "unknown", count, labels)
    ordered = sorted(recent_ns)
    for q in QUANTILES:
        value_ns = ordered[min(int(q * len(ordered)), len(ordered) - 1)] if ordered else 0
        yield Sample(name, "gauge", value_ns / 1e6, {**labels, "quantile": str(q)})
