"""A pipeline's progress under names for Prometheus."""

from collections.abc import Callable, Iterable

from odradek.apps.pipeline.progress import Offsets, QueryProgressBoard
from odradek.apps.pipeline.status import lag
from odradek.base.metrics import Registry, Sample

_COUNTERS = {
    "input_rows_total": "input_rows_total",
    "late_rows_total": "late_rows_total",
    "duplicates_total": "duplicates_total",
    "restarts_total": "restarts",
}
_GAUGES = {
    "batch": "batch",
    "input_rows_per_second": "input_rows_per_second",
    "processed_rows_per_second": "processed_rows_per_second",
    "batch_milliseconds": "batch_ms",
    "state_rows": "state_rows",
    "state_bytes": "state_bytes",
}


def pipeline_registry(pipeline: str, board: QueryProgressBoard, ends: Callable[[], Offsets]) -> Registry:
    def samples() -> Iterable[Sample]:
        known = ends()
        for query in board.queries():
            labels = {"pipeline": pipeline, "query": query.name}
            for name, attribute in _COUNTERS.items():
                yield Sample(f"odradek_pipeline_{name}", "counter", getattr(query, attribute), labels)
            for name, attribute in _GAUGES.items():
                yield Sample(f"odradek_pipeline_{name}", "gauge", getattr(query, attribute), labels)
            waiting = lag(query.offsets, known)
            if waiting is not None:
                yield Sample("odradek_pipeline_lag_records", "gauge", waiting, labels)

    registry = Registry()
    registry.add(samples)
    return registry
