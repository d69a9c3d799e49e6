"""How every command shows its result: a table for people, JSON and CSV for programs.

Data goes to standard output and everything else (progress, notes, warnings) to standard error, so that a pipe
carries data only. Colours and progress bars appear on a terminal only.
"""

import csv
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.progress import Progress  # few commands need it, and loading it takes a while

Row = Mapping[str, object]


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"


BootstrapOption = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT,…",
        envvar="ODRADEK_BOOTSTRAP_SERVER",
        help="Brokers to ask first; any one that answers is enough.",
    ),
]
FormatOption = Annotated[Format, typer.Option("--format", help="A table for people, json or csv for programs.")]
DEFAULT_BOOTSTRAP = "127.0.0.1:9092"

# Rich folds cells at 80 columns where there's no terminal to ask; a file or a pipe has no such edge.
_WIDTH_WITHOUT_TERMINAL = 10_000
# It takes half a millisecond for a row; where there is nothing to fold, or far too much to look at, plain text does.
_FOLDED_ROWS_MAX = 200


def data_console() -> Console:
    """Standard output. Made anew for each use, so that it follows a redirected `sys.stdout`."""
    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL, highlight=False)


def note_console() -> Console:
    return Console(
        file=sys.stderr,
        width=None if sys.stderr.isatty() else _WIDTH_WITHOUT_TERMINAL,
        highlight=False,
        markup=False,
    )


def note(text: str) -> None:
    """One line about the work, kept out of the data."""
    note_console().print(text)


def warn(text: str) -> None:
    note_console().print(Text.assemble(("warning: ", "yellow"), text))


def print_json(value: object) -> None:
    json.dump(value, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")


def print_rows(
    rows: Sequence[Row], columns: Sequence[str], output: Format, *, title: str = "", empty: str = ""
) -> None:
    """The rows with the named columns. JSON keeps every key of a row, the other two show the columns only.

    `empty` is told on standard error when a table would have no rows.
    """
    match output:
        case Format.JSON:
            print_json([dict(row) for row in rows])
        case Format.CSV:
            _print_csv(rows, columns)
        case Format.TABLE:
            if not rows and empty:
                note(empty)
            elif sys.stdout.isatty() and len(rows) <= _FOLDED_ROWS_MAX:
                _print_titled(_table(rows, columns), title)
            else:
                sys.stdout.write(_plain_table(rows, columns, title))


def print_fields(fields: Row, output: Format, *, title: str = "") -> None:
    """One result with several values: names on the left, values on the right."""
    match output:
        case Format.JSON:
            print_json(dict(fields))
        case Format.CSV:
            _print_csv([fields], list(fields))
        case Format.TABLE:
            table = Table(box=None, show_header=False, pad_edge=False)
            table.add_column(style="bold")
            table.add_column()
            for name, value in fields.items():
                table.add_row(_heading(name), Text(cell(value)))
            _print_titled(table, title)


def progress(description: str, total: int | None, *, unit: str = "records", hidden: bool = False) -> "Progress":
    """A started-by-`with` progress bar with one task; it draws nothing where standard error isn't a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
        console=note_console(),
        disable=hidden or not sys.stderr.isatty(),
        transient=True,
    )
    bar.add_task(description, total=total)
    return bar


def cell(value: object) -> str:
    """A value as a table or CSV shows it."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:,.2f}"
        case dict():
            return ",".join(f"{key}={item}" for key, item in value.items())
        case str():
            return value
        case Iterable():
            return ",".join(cell(item) for item in value)
        case _:
            return str(value)


def bytes_as_text(data: bytes | None) -> str | None:
    """Bytes of a record for a person: as UTF-8, with what isn't UTF-8 as \\x escapes."""
    return None if data is None else data.decode("utf-8", errors="backslashreplace")


def size_as_text(size_bytes: float) -> str:
    for unit in ("B", "KB", "MB"):
        if size_bytes < 1024:
            return f"{size_bytes:,.0f} {unit}" if unit == "B" else f"{size_bytes:,.1f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:,.2f} GB"


def _print_csv(rows: Sequence[Row], columns: Sequence[str]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_csv_cell(row.get(column)) for column in columns])


def _csv_cell(value: object) -> str:
    # Programs read CSV: full precision, true/false, no thousands separators.
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, float) else cell(value)


def _print_titled(table: Table, title: str) -> None:
    console = data_console()
    if title:  # rich would fold a title to the width of its table
        console.print(Text(title, style="bold"))
    console.print(table)


def _plain_table(rows: Sequence[Row], columns: Sequence[str], title: str) -> str:
    """The same without colours and folding: columns side by side, each as wide as its widest cell."""
    cells = [[cell(row.get(column)) for row in rows] for column in columns]
    headings = [_heading(column) for column in columns]
    widths = [max([len(heading), *map(len, column)]) for heading, column in zip(headings, cells, strict=True)]
    numeric = [bool(rows) and all(_is_number(row.get(column)) for row in rows) for column in columns]
    form = "   ".join(f"{{:{'>' if right else '<'}{width}}}" for width, right in zip(widths, numeric, strict=True))
    lines = [*([title] if title else []), form.format(*headings), "─" * (sum(widths) + 3 * (len(widths) - 1))]
    lines += [form.format(*row) for row in zip(*cells, strict=True)]
    return "\n".join(line.rstrip() for line in lines) + "\n\n"


def _table(rows: Sequence[Row], columns: Sequence[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        numeric = bool(rows) and all(_is_number(row.get(column)) for row in rows)
        table.add_column(_heading(column), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell(row.get(column))) for column in columns))
    return table


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _heading(column: str) -> str:
    return column.replace("_", " ")
