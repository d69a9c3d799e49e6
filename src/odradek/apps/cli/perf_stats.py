"""Figures of a perf run: counts, rates, latencies."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MEGABYTE = 1024 * 1024
_WINDOW_SECONDS = 5.0
_PERCENTILES = {"p50_ms": 0.50, "p95_ms": 0.95, "p99_ms": 0.99, "p999_ms": 0.999}


@dataclass(frozen=True, slots=True)
class Sample:
    """One answered request; its latency counts for all of its records."""

    latency_ms: float
    records: int


def throughput(records: int, record_bytes: int, seconds: float) -> dict[str, object]:
    seconds = max(seconds, 1e-9)
    return {
        "records": records,
        "bytes": record_bytes,
        "seconds": round(seconds, 3),
        "records_per_second": round(records / seconds, 1),
        "mb_per_second": round(record_bytes / MEGABYTE / seconds, 2),
    }


def latencies(samples: Sequence[Sample]) -> dict[str, object]:
    """Average, largest value and percentiles over records; empty without answers."""
    names = ("latency_avg_ms", "latency_max_ms", *_PERCENTILES)
    total = sum(sample.records for sample in samples)
    if not total:
        return dict.fromkeys(names)
    ordered = sorted(samples, key=lambda sample: sample.latency_ms)
    average = sum(sample.latency_ms * sample.records for sample in ordered) / total
    figures: dict[str, object] = {
        "latency_avg_ms": round(average, 2),
        "latency_max_ms": round(ordered[-1].latency_ms, 2),
    }
    for name, share in _PERCENTILES.items():
        figures[name] = round(_percentile(ordered, math.ceil(total * share)), 2)
    return figures


def _percentile(ordered: Sequence[Sample], rank: int) -> float:
    """The latency of the record with this rank, counted from 1."""
    seen = 0
    for sample in ordered:
        seen += sample.records
        if seen >= rank:
            return sample.latency_ms
    return ordered[-1].latency_ms


def window_line(records: int, record_bytes: int, seconds: float, samples: Sequence[Sample]) -> str:
    """Format the line that kafka-producer-perf-test prints every five seconds."""
    return producer_line({**throughput(records, record_bytes, seconds), **latencies(samples)}, with_percentiles=False)


def kafka_line(figures: dict[str, object]) -> str:
    """Format the last line of kafka-producer-perf-test exactly: whole milliseconds for percentiles."""
    known = {name: 0.0 if value is None else float(str(value)) for name, value in figures.items()}
    percentiles = ", ".join(
        f"{known[name]:.0f} ms {rank}th"
        for name, rank in (("p50_ms", "50"), ("p95_ms", "95"), ("p99_ms", "99"), ("p999_ms", "99.9"))
    )
    return (
        f"{known['records']:.0f} records sent, {known['records_per_second']:.1f} records/sec "
        f"({known['mb_per_second']:.2f} MB/sec), {known['latency_avg_ms']:.2f} ms avg latency, "
        f"{known['latency_max_ms']:.2f} ms max latency, {percentiles}."
    )


class Windows:
    """Prints a line about every five seconds of a producer's work."""

    def __init__(self, samples: Sequence[Sample], record_size: int, tell: Callable[[str], None]) -> None:
        self._samples = samples
        self._record_size = record_size
        self._tell = tell
        self._began, self._records, self._seen = time.monotonic(), 0, 0

    def __call__(self, acknowledged: int) -> None:
        seconds = time.monotonic() - self._began
        if seconds < _WINDOW_SECONDS:
            return
        records = acknowledged - self._records
        self._tell(window_line(records, records * self._record_size, seconds, self._samples[self._seen :]))
        self._began, self._records, self._seen = time.monotonic(), acknowledged, len(self._samples)


def producer_line(figures: dict[str, object], *, with_percentiles: bool = True) -> str:
    """Format the line that kafka-producer-perf-test prints at the end. Without answers (acks=0) it has no latencies."""
    line = (
        f"{figures['records']} records sent, {figures['records_per_second']} records/sec "
        f"({figures['mb_per_second']} MB/sec)"
    )
    if figures["latency_avg_ms"] is not None:
        line += f", {figures['latency_avg_ms']} ms avg latency, {figures['latency_max_ms']} ms max latency"
        if with_percentiles:
            line += (
                f", {figures['p50_ms']} ms 50th, {figures['p95_ms']} ms 95th, {figures['p99_ms']} ms 99th, "
                f"{figures['p999_ms']} ms 99.9th"
            )
    return line + "."
