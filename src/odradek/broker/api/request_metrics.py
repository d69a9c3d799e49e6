"""Counts of requests by kind, and their times: queue, local, remote, response, total.

The times of the last thousand requests of each API are stored, one store per request; durations and quantiles are
computed when they are read.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from odradek.base.metrics import Sample, histogram_samples
from odradek.protocol.api_keys import ApiKey

REMEMBERED = 1024  # a power of two: a mask finds the place


class Moments(NamedTuple):
    """Times at which a request was read, begun, left by its handler, answered, and sent. In nanoseconds of
    one clock."""

    received: int
    started: int
    handled: int
    replied: int
    sent: int


# What Kafka calls each stretch of a request's life.
STRETCHES: dict[str, Callable[[Moments], int]] = {
    "requestqueuetimems": lambda m: m.started - m.received,  # for a thread
    "localtimems": lambda m: m.handled - m.started,  # in the handler
    "remotetimems": lambda m: max(0, m.replied - m.handled),  # in a purgatory
    "responsesendtimems": lambda m: m.sent - m.replied,
    "totaltimems": lambda m: m.sent - m.received,
}


class ApiTimings:
    __slots__ = ("_by_version", "_count", "_recent")

    def __init__(self) -> None:
        self._by_version: Counter[int] = Counter()
        self._recent: list[tuple[int, int, int, int, int] | None] = [None] * REMEMBERED
        self._count = 0

    def record(self, version: int, moments: tuple[int, int, int, int, int]) -> None:
        """`moments` as in `Moments`, which is made on demand."""
        self._by_version[version] += 1
        self._recent[self._count & (REMEMBERED - 1)] = moments
        self._count += 1

    def samples(self, api: str) -> Iterable[Sample]:
        prefix = "kafka_network_requestmetrics_"
        for version, count in sorted(self._by_version.copy().items()):
            yield Sample(f"{prefix}requests_total", "counter", count, {"request": api, "version": str(version)})
        recent = [Moments._make(moments) for moments in self._recent if moments is not None]
        for name, stretch in STRETCHES.items():
            yield from histogram_samples(prefix + name, [stretch(m) for m in recent], self._count, {"request": api})


class RequestMetrics:
    def __init__(self) -> None:
        self._apis: dict[int, ApiTimings] = {}

    def of(self, key: int) -> ApiTimings:
        timings = self._apis.get(key)
        if timings is None:
            timings = self._apis.setdefault(key, ApiTimings())
        return timings

    def samples(self) -> Iterable[Sample]:
        for key, timings in sorted(self._apis.items()):
            yield from timings.samples(ApiKey(key).name.title().replace("_", ""))
