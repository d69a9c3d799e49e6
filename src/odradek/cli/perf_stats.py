"""Figures of a perf run: how many, how fast, how late."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

MEGABYTE = 1024 * 1024
_PERCENTILES = {"p50_ms": 0.50, "p95_ms": 0.95, "p99_ms": 0.99, "p999_ms": 0.999}


@dataclass(frozen=True, slots=True)
class Sample:
    """One answered request: all its records waited as long as it did."""

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
    """Average, largest and percentiles over records; nothing is known where nothing was answered."""
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
    """What kafka-producer-perf-test prints every five seconds."""
    return producer_line({**throughput(records, record_bytes, seconds), **latencies(samples)}, with_percentiles=False)


def producer_line(figures: dict[str, object], *, with_percentiles: bool = True) -> str:
    """What kafka-producer-perf-test prints at the end. Without answers (acks=0) there are no latencies to tell."""
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
