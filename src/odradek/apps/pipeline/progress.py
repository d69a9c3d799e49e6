"""Progress of a pipeline's queries: Spark's reports of each batch, added up. Values only.

Written by the listener, read by the display, the status file, the metrics and the group's commits.
"""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from odradek.model.topology import TopicPartition

Offsets = Mapping[str, Mapping[str, int]]
# Parts of a batch in the order of their run, and Spark's names of them.
BATCH_PARTS = {
    "offsets": ("latestOffset", "getBatch"),
    "log": ("walCommit", "commitOffsets", "commitBatch"),
    "planning": ("queryPlanning",),
    "rows": ("addBatch",),
}


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """`…_total` count since this process started; the others are of the last batch."""

    name: str
    batch: int = -1
    input_rows_total: int = 0
    input_rows_per_second: float = 0.0
    processed_rows_per_second: float = 0.0
    batch_ms: int = 0
    batch_parts_ms: Mapping[str, int] = field(default_factory=dict)
    event_to_sink_ms: int | None = None  # from the batch's newest event to its end; None without a watermark
    state_rows: int = 0
    state_bytes: int = 0
    late_rows_total: int = 0
    duplicates_total: int = 0
    watermark: str | None = None
    at: str | None = None
    offsets: Offsets = field(default_factory=dict)
    restarts: int = 0
    error: str | None = None
    waits_for: str | None = None  # None: a batch runs

    def after(self, report: Mapping[str, Any], branches: int = 1) -> "QueryProgress":
        """Add a report of Spark in its JSON form. Each of `branches` deduplicates the same rows."""
        operators = report.get("stateOperators", [])
        dedupes = [o for o in operators if str(o.get("operatorName")).startswith("dedupe")]
        late_in_dedupes = sum(o["numRowsDroppedByWatermark"] for o in dedupes)
        late = sum(o["numRowsDroppedByWatermark"] for o in operators) - late_in_dedupes + late_in_dedupes // branches
        twice = sum(o.get("customMetrics", {}).get("numDroppedDuplicateRows", 0) for o in operators) // branches
        return replace(
            self,
            batch=report["batchId"],
            input_rows_total=self.input_rows_total + report.get("numInputRows", 0),
            input_rows_per_second=_number(report.get("inputRowsPerSecond")),
            processed_rows_per_second=_number(report.get("processedRowsPerSecond")),
            batch_ms=report.get("durationMs", {}).get("triggerExecution", 0),
            batch_parts_ms=batch_parts(report),
            event_to_sink_ms=event_to_sink_ms(report, self.event_to_sink_ms),
            state_rows=sum(operator["numRowsTotal"] for operator in operators),
            state_bytes=sum(operator["memoryUsedBytes"] for operator in operators),
            late_rows_total=self.late_rows_total + late,
            duplicates_total=self.duplicates_total + twice,
            watermark=report.get("eventTime", {}).get("watermark", self.watermark),
            at=report["timestamp"],
            offsets=source_offsets(report) or self.offsets,
            error=None,  # it works again
        )


class QueryProgressBoard:
    """Latest progress of each query. Thread-safe."""

    def __init__(self, names: list[str]) -> None:
        self._lock = threading.Lock()
        self._queries = {name: QueryProgress(name) for name in names}
        self._branches: dict[str, int] = {}

    def report(self, name: str, report: Mapping[str, Any]) -> None:
        with self._lock:
            if name in self._queries:
                self._queries[name] = self._queries[name].after(report, self._branches.get(name, 1))

    def resume(self, name: str, offsets: Offsets, branches: int = 1) -> None:
        """Set the offsets of the query before its first report, which comes only with something to read."""
        with self._lock:
            self._branches[name] = max(1, branches)
            self._queries[name] = replace(self._queries.get(name, QueryProgress(name)), offsets=offsets)

    def note(self, name: str, *, restarts: int, error: str | None) -> None:
        with self._lock:
            self._queries[name] = replace(self._queries[name], restarts=restarts, error=error)

    def wait(self, name: str, reason: str | None) -> None:
        with self._lock:
            self._queries[name] = replace(self._queries[name], waits_for=reason)

    def queries(self) -> list[QueryProgress]:
        with self._lock:
            return list(self._queries.values())


def batch_parts(report: Mapping[str, Any]) -> dict[str, int]:
    """Milliseconds of the batch's parts, as far as Spark says."""
    took: Mapping[str, int] = report.get("durationMs", {})
    return {part: sum(took.get(name, 0) for name in names) for part, names in BATCH_PARTS.items()}


def event_to_sink_ms(report: Mapping[str, Any], before: int | None) -> int | None:
    """Return the time from the newest event to the end of its batch; a batch without events changes nothing.

    Not from the average one: Spark counts rows without an event time, which are bad ones, as events of 1970.
    """
    newest = report.get("eventTime", {}).get("max")
    if newest is None or _moment(newest).timestamp() == 0:  # a batch of bad rows alone
        return before
    end = _moment(report["timestamp"]) + timedelta(milliseconds=report.get("durationMs", {}).get("triggerExecution", 0))
    return max(0, round((end - _moment(newest)).total_seconds() * 1000))


def source_offsets(report: Mapping[str, Any]) -> Offsets:
    """Return the offsets of the query after the batch, over all sources with offsets of topics."""
    found: dict[str, dict[str, int]] = {}
    for source in report.get("sources", []):
        end = source.get("endOffset")
        if isinstance(end, str):
            try:
                end = json.loads(end)
            except ValueError:
                continue
        if not isinstance(end, dict) or not all(isinstance(partitions, dict) for partitions in end.values()):
            continue
        for topic, partitions in end.items():
            found.setdefault(topic, {}).update({partition: int(offset) for partition, offset in partitions.items()})
    return found


def by_partition(offsets: Offsets) -> dict[TopicPartition, int]:
    return {TopicPartition(t, int(p)): offset for t, partitions in offsets.items() for p, offset in partitions.items()}


def _number(value: Any) -> float:
    """Parse a number; Spark writes NaN and Infinity as texts for a batch without duration."""
    return float(value) if isinstance(value, int | float) and value < float("inf") else 0.0


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
