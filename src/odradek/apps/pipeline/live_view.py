"""View of a run: a table on the terminal that is redrawn in place; elsewhere a line from time to time."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from odradek.apps.pipeline.targets import short_target

_LINE_SECONDS = 5.0
_STATE_COLOURS = {"running": "green", "starting": "yellow", "stopping": "yellow", "failed": "red", "died": "red"}


_OVER = ("stopped", "failed", "died")
_TEXTS = ("query", "sink", "delivery")
_COLUMNS = (*_TEXTS, "batch", "rows in", "rows/s", "batch ms", "state rows", "late rows", "duplicates", "lag")
_MOST_TELLING = (
    "query",
    "lag",
    "batch",
    "rows in",
    "rows/s",
    "batch ms",
    "late rows",
    "duplicates",
    "state rows",
    "sink",
    "delivery",
)
_GAP = 2


class LiveView:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = _live(console) if console.is_terminal else None
        self._next_line_s = 0.0
        self._ui: str | None = None
        self._last_printed: dict[str, int] = {}
        self._failures: dict[str, str] = {}

    def __enter__(self) -> "LiveView":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def show(self, status: Mapping[str, Any], at_s: float) -> None:
        if self._live:
            self._live.update(status_panel(status), refresh=True)
        elif at_s >= self._next_line_s or status.get("state") in _OVER:
            if (address := status.get("spark_ui")) and address != self._ui:
                self._ui = address
                self._console.print(f"Spark UI at {address}")
            self._next_line_s = at_s + _LINE_SECONDS
            for query in status["queries"]:
                if query["batch"] > self._last_printed.get(query["name"], -1):
                    self._last_printed[query["name"]] = query["batch"]
                    self._console.print(_line(query))
                if query["error"] and query["error"] != self._failures.get(query["name"]):
                    self._failures[query["name"]] = query["error"]
                    self._console.print(_failure(query))


def _live(console: Console) -> Live:
    """A console sink's rows go above the table, or to the file that standard output is; logs stay in Spark's log."""
    return Live(console=console, auto_refresh=False, redirect_stdout=sys.stdout.isatty(), redirect_stderr=False)


def status_panel(status: Mapping[str, Any]) -> Group:
    state = Text(status["state"], style=_STATE_COLOURS.get(status["state"], ""))
    head = Text.assemble((status["pipeline"], "bold"), "  ", state, f"  on {status['spark']}  {status['project']}")
    if status.get("spark_ui") and status["state"] not in _OVER:
        head.append(f"  Spark UI {status['spark_ui']}")
    return Group(head, QueriesTable(status["queries"], is_over=status["state"] in _OVER))


class QueriesTable:
    """The queries, a line each: as many columns as fit the terminal, the most important first; then the parts of
    each query's last batch and the reason for which it waits.
    """

    def __init__(self, queries: Sequence[Mapping[str, Any]], *, is_over: bool = False) -> None:
        self._queries = queries
        self._is_over = is_over

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        cells = [_cells(query) for query in self._queries]
        widths = {name: max([len(name), *(len(row[name]) for row in cells)]) for name in _COLUMNS}
        shown: list[str] = []
        for name in _MOST_TELLING:
            if sum(widths[other] + _GAP for other in (*shown, name)) <= options.max_width:
                shown.append(name)
        table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, _GAP - 1, 0, 0))
        for name in _COLUMNS:
            if name in shown:
                table.add_column(name, no_wrap=True, justify="left" if name in _TEXTS else "right")
        for query, row in zip(self._queries, cells, strict=True):
            style = "red" if query["error"] else ""
            table.add_row(*(Text(row[name], style=style) for name in _COLUMNS if name in shown))
        yield table
        for query in self._queries:
            if query["error"]:
                yield Text(_failure(query), style="red")
            if not self._is_over and (facts := _last_batch(query)):
                yield Text(f"{query['name']}: {facts}", style="dim")


def _cells(query: Mapping[str, Any]) -> dict[str, str]:
    return {
        "query": query["name"],
        "sink": ", ".join(short_target(sink["target"]) for sink in query.get("sinks") or [query]),
        "delivery": query["delivery"],
        "batch": str(query["batch"]) if query["batch"] >= 0 else "…",
        "rows in": f"{query['input_rows_total']:,}",
        "rows/s": f"{query['processed_rows_per_second']:,.0f}",
        "batch ms": f"{query['batch_ms']:,}",
        "state rows": f"{query['state_rows']:,}",
        "late rows": f"{query['late_rows_total']:,}",
        "duplicates": f"{query['duplicates_total']:,}",
        "lag": "?" if query["lag"] is None else f"{query['lag']:,}",
    }


def _last_batch(query: Mapping[str, Any]) -> str:
    """Latency, parts of the last batch, and the reason for which a query waits; none in status files of earlier
    releases."""
    facts: list[str] = []
    if query.get("event_to_sink_ms") is not None:
        facts.append(f"event to sink {_seconds(query['event_to_sink_ms'])}")
    if parts := query.get("batch_parts_ms"):
        facts.append(f"last batch {', '.join(f'{name} {ms:,} ms' for name, ms in parts.items())}")
    if query.get("waits_for"):
        facts.append(f"waits for {query['waits_for']}")
    return "; ".join(facts)


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds:,} ms" if milliseconds < 10_000 else f"{milliseconds / 1000:,.0f} s"


def _failure(query: Mapping[str, Any]) -> str:
    return f"{query['name']} failed: {query['error']}"


def _line(query: Mapping[str, Any]) -> str:
    lag = "?" if query["lag"] is None else f"{query['lag']:,}"
    latency = query.get("event_to_sink_ms")
    return (
        f"{query['name']}: batch {query['batch']}, {query['input_rows_total']:,} rows in, "
        f"{query['processed_rows_per_second']:,.0f} rows/s, {query['batch_ms']:,} ms, lag {lag}"
        f"{'' if latency is None else f', event to sink {_seconds(latency)}'}"
    )
