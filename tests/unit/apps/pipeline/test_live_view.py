"""A run on the terminal, and where there is none."""

import io
from typing import Any

import pytest
from rich.console import Console

from odradek.apps.pipeline.live_view import LiveView, QueriesTable, status_panel


def query(name: str, **told: Any) -> dict[str, Any]:
    return {
        "name": name,
        "target": "parquet table /home/somebody/shop/data/orders",
        "delivery": "exactly once",
        "batch": 12,
        "input_rows_total": 1_234_567,
        "processed_rows_per_second": 823.4,
        "batch_ms": 1340,
        "state_rows": 12_000,
        "late_rows_total": 0,
        "duplicates_total": 134,
        "lag": None,
        "error": None,
        **told,
    }


@pytest.mark.parametrize(
    ("width", "first", "left_out"),
    [
        (160, "query sink delivery batch", ()),
        (80, "query batch rows in", ("sink", "state")),
        (40, "query batch lag", ()),
    ],
)
def test_a_query_is_one_line_on_every_terminal(width: int, first: str, left_out: tuple[str, ...]) -> None:
    out = io.StringIO()
    Console(file=out, width=width).print(QueriesTable([query("dead_letters_categories"), query("orders_table")]))
    lines = [line for line in out.getvalue().splitlines() if line.strip()]
    assert len(lines) == 4
    assert max(map(len, lines)) <= width
    assert " ".join(lines[0].split()).startswith(first)
    assert not set(left_out) & set(lines[0].split())


def test_what_failed_is_told_below() -> None:
    out = io.StringIO()
    Console(file=out, width=60).print(QueriesTable([query("orders_table", error="the disk is full")]))
    assert "orders_table failed: the disk is full" in out.getvalue()


def test_without_a_terminal_there_is_a_line_for_what_is_new() -> None:
    out = io.StringIO()
    with LiveView(Console(file=out, width=200)) as view:
        view.show({"queries": [query("t", batch=-1)]}, 0.0)
        view.show({"queries": [query("t", error="the disk is full")]}, 10.0)
        view.show({"queries": [query("t", error="the disk is full")]}, 20.0)
        view.show({"queries": [query("t", batch=13, lag=0)]}, 30.0)
        view.show({"queries": [query("t", batch=14, lag=0)]}, 31.0)
        view.show({"queries": [query("t", batch=15, lag=0)], "state": "stopped"}, 32.0)
    assert out.getvalue().splitlines() == [
        "t: batch 12, 1,234,567 rows in, 823 rows/s, 1,340 ms, lag ?",
        "t failed: the disk is full",
        "t: batch 13, 1,234,567 rows in, 823 rows/s, 1,340 ms, lag 0",
        "t: batch 15, 1,234,567 rows in, 823 rows/s, 1,340 ms, lag 0",
    ]


def test_the_last_batch_and_the_reason_to_wait_are_below_the_table() -> None:
    out = io.StringIO()
    told = query("orders", event_to_sink_ms=1400, batch_parts_ms={"offsets": 11, "rows": 700}, waits_for="records")
    status = {"pipeline": "shop", "state": "running", "spark": "local[2]", "project": "/p", "queries": [told]}
    Console(file=out, width=160).print(status_panel({**status, "spark_ui": "http://127.0.0.1:4040"}))
    assert "Spark UI http://127.0.0.1:4040" in out.getvalue()
    wanted = "orders: event to sink 1,400 ms; last batch offsets 11 ms, rows 700 ms; waits for records"
    assert wanted in out.getvalue()
