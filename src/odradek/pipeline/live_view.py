"""A run on the terminal: a table that stays in place and moves, or a line now and then where there's no terminal."""

from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

_LINE_SECONDS = 5.0
_STATE_COLOURS = {"running": "green", "starting": "yellow", "stopping": "yellow", "failed": "red", "died": "red"}


class LiveView:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._next_line_s = 0.0
        self._told: dict[str, int] = {}

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
        elif at_s >= self._next_line_s:
            self._next_line_s = at_s + _LINE_SECONDS
            for query in status["queries"]:
                if query["batch"] > self._told.get(query["name"], -1):
                    self._told[query["name"]] = query["batch"]
                    self._console.print(_line(query))


def status_panel(status: Mapping[str, Any]) -> Group:
    state = Text(status["state"], style=_STATE_COLOURS.get(status["state"], ""))
    head = Text.assemble((status["pipeline"], "bold"), "  ", state, f"  on {status['spark']}")
    if status["reason"]:
        head.append(f"  {status['reason']}", style="red")
    return Group(head, queries_table(status))


def queries_table(status: Mapping[str, Any]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in ("query", "to", "promise"):
        table.add_column(column, overflow="fold")
    for column in ("batch", "rows in", "rows/s", "batch ms", "state", "late", "twice", "lag"):
        table.add_column(column, justify="right")
    for query in status["queries"]:
        table.add_row(
            Text(query["name"], style="red" if query["error"] else ""),
            _short(query["target"]),
            query["delivery"],
            str(query["batch"]) if query["batch"] >= 0 else "…",
            f"{query['input_rows_total']:,}",
            f"{query['processed_rows_per_second']:,.0f}",
            f"{query['batch_ms']:,}",
            f"{query['state_rows']:,}",
            f"{query['late_rows_total']:,}",
            f"{query['duplicates_total']:,}",
            "?" if query["lag"] is None else f"{query['lag']:,}",
        )
    return table


def _short(target: str) -> str:
    """A path by its last name: the table is what counts, not where the project lives."""
    return target if "/" not in target else f"{target.partition('/')[0]}{target.rpartition('/')[2]}"


def _line(query: Mapping[str, Any]) -> str:
    lag = "?" if query["lag"] is None else f"{query['lag']:,}"
    return (
        f"{query['name']}: batch {query['batch']}, {query['input_rows_total']:,} rows in, "
        f"{query['processed_rows_per_second']:,.0f} rows/s, {query['batch_ms']:,} ms, lag {lag}"
    )
