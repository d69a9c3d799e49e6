"""Reports of Spark, added up and shown."""

import json
import os
from pathlib import Path
from typing import Any

from odradek.apps.pipeline.declaration import read_pipeline
from odradek.apps.pipeline.pipeline_metrics import pipeline_registry
from odradek.apps.pipeline.progress import QueryProgressBoard, source_offsets
from odradek.apps.pipeline.queries import plan
from odradek.apps.pipeline.scaffold import init_project
from odradek.apps.pipeline.status import RunFacts, find_statuses, lag, read_status, status_document, write_status

REPORT: dict[str, Any] = {
    "batchId": 4,
    "numInputRows": 100,
    "inputRowsPerSecond": 50.0,
    "processedRowsPerSecond": "Infinity",
    "timestamp": "2026-01-01T00:00:00.000Z",
    "durationMs": {"triggerExecution": 321},
    "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
    "stateOperators": [
        {"numRowsTotal": 7, "memoryUsedBytes": 900, "numRowsDroppedByWatermark": 2, "customMetrics": {}},
        {
            "numRowsTotal": 3,
            "memoryUsedBytes": 100,
            "numRowsDroppedByWatermark": 0,
            "customMetrics": {"numDroppedDuplicateRows": 5},
        },
    ],
    "sources": [
        {"endOffset": {"orders": {"0": 60, "1": 40}}},
        {"endOffset": '{"clicks": {"0": 9}}'},
        {"endOffset": 17},
        {"endOffset": "no JSON"},
    ],
}


def test_reports_add_up() -> None:
    board = QueryProgressBoard(["q"])
    board.report("q", REPORT)
    board.report("q", {**REPORT, "batchId": 5})
    board.report("a query of somebody else", REPORT)
    (query,) = board.queries()
    assert (query.batch, query.input_rows_total, query.batch_ms) == (5, 200, 321)
    assert (query.state_rows, query.state_bytes, query.late_rows_total, query.duplicates_total) == (10, 1000, 4, 10)
    assert query.processed_rows_per_second == 0, "a rate without time is none"
    assert query.offsets == {"orders": {"0": 60, "1": 40}, "clicks": {"0": 9}}


def test_parts_and_latency_of_a_batch() -> None:
    took = {"triggerExecution": 900, "latestOffset": 10, "getBatch": 1, "walCommit": 20, "addBatch": 700}
    event_time = {"max": "2026-01-01T00:00:00.000Z", "avg": "1990-01-01T00:00:00.000Z"}
    board = QueryProgressBoard(["q"])
    report = {**REPORT, "timestamp": "2026-01-01T00:00:00.500Z", "durationMs": took, "eventTime": event_time}
    board.report("q", report)
    board.report("q", {**report, "eventTime": {}})  # a batch without events
    board.report("q", {**report, "eventTime": {"max": "1970-01-01T00:00:00.000Z"}})  # a batch of bad rows
    board.wait("q", "records")
    (query,) = board.queries()
    assert query.batch_parts_ms == {"offsets": 11, "log": 20, "planning": 0, "rows": 700}
    assert (query.event_to_sink_ms, query.waits_for) == (1400, "records")


def test_offsets_of_other_sources_are_passed_over() -> None:
    assert source_offsets({"sources": [{"endOffset": None}, {"endOffset": {"a": 3}}]}) == {}


def test_lag_counts_what_waits() -> None:
    assert lag({"a": {"0": 5}}, {"a": {"0": 9, "1": 3}}) == 7, "a partition that came meanwhile waits as a whole"
    assert lag({"a": {"0": 5}}, {}) is None
    assert lag({}, {"a": {"0": 5}}) is None


def test_the_status_file_says_whether_its_process_lives(tmp_path: Path) -> None:
    init_project(tmp_path / "shop", "shop", "127.0.0.1:1")
    pipeline = read_pipeline(tmp_path / "shop")
    facts = RunFacts("local[2]", "then", 1, None, {"orders": plan(pipeline)})
    queries = QueryProgressBoard(["orders"]).queries()
    document = status_document(pipeline, facts, "running", None, queries, {})
    write_status(pipeline, document)
    (found,) = find_statuses(tmp_path)
    assert (found["state"], found["pid"]) == ("running", os.getpid())
    assert found["queries"][0]["group"] == "pipeline-shop-orders"
    assert found["queries"][0]["delivery"] == "exactly once"
    assert [sink["name"] for sink in found["queries"][0]["sinks"]] == ["orders_table", "revenue_topic", "dead_letters"]
    path = pipeline.state_directory / "status.json"
    path.write_text(json.dumps({**document, "process_start": "long ago"}))
    died = read_status(tmp_path / "shop")
    assert died is not None
    assert died["state"] == "died"


def test_metrics_carry_the_query(tmp_path: Path) -> None:
    board = QueryProgressBoard(["q"])
    board.report("q", REPORT)
    samples = {
        sample.name: sample
        for sample in pipeline_registry(
            "p", board, lambda: {"orders": {"0": 70, "1": 40}, "clicks": {"0": 9}}
        ).collect()
    }
    assert samples["odradek_pipeline_input_rows_total"].value == 100
    assert samples["odradek_pipeline_lag_records"].value == 10
    assert samples["odradek_pipeline_lag_records"].labels == {"pipeline": "p", "query": "q"}
