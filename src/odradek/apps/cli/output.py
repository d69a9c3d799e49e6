"""Output of every command: a table for people, JSON and CSV for programs.

Data goes to standard output and everything else (progress, notes, warnings) to standard error, so that a pipe
carries data only. Colours and progress bars appear on a terminal only.
"""

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from odradek.apps.cli.colour import styled
from odradek.apps.cli.default_cluster import (
    BOOTSTRAP_VARIABLE,
    bootstrap_by_default,
    use_data,
    use_profile,
)
from odradek.apps.cli.default_cluster import DEFAULT_DATA as DEFAULT_DATA
from odradek.apps.cli.grammar.declaration import Option, SideOption
from odradek.apps.text_table import text_table
from odradek.client.bootstrap import DEFAULT_BOOTSTRAP as DEFAULT_BOOTSTRAP
from odradek.client.bootstrap import parse_bootstrap
from odradek.client.command_config import COMMAND_CONFIG_VARIABLE, use_command_config

Row = Mapping[str, object]
_JSON_INDENT = 2


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    WIDE = "wide"

    @property
    def is_table(self) -> bool:
        return self in (Format.TABLE, Format.WIDE)


_COMMAND_CONFIG = SideOption(
    "command_config",
    Option(
        "--command-config",
        metavar="FILE",
        envvar=COMMAND_CONFIG_VARIABLE,
        help="Properties of the client, as Kafka's tools take them: security.protocol, sasl.…, ssl.…",
    ),
    Path,
    use_command_config,
)
_DATA = SideOption(
    "data",
    Option("--data", metavar="DIR", help="The cluster that `odradek up --data DIR` made, in place of an address."),
    Path,
    use_data,
)
_PROFILE = SideOption(
    "profile",
    Option("--profile", metavar="NAME", help="The cluster of that profile (odradek profile)."),
    str,
    use_profile,
)
BootstrapOption = Annotated[
    str,
    Option(
        "--bootstrap-server, -b",
        metavar="HOST:PORT,…",
        check=parse_bootstrap,
        envvar=BOOTSTRAP_VARIABLE,
        fallback=bootstrap_by_default,
        brings=(_PROFILE, _DATA, _COMMAND_CONFIG),
        help="Brokers to ask first; any one that answers is enough. `odradek profile --help` says which cluster is "
        "asked without it.",
    ),
]
FormatOption = Annotated[
    Format,
    Option("--format, -o", help="A table for people, wide with every column; json or csv for programs."),
]

# Folding takes half a millisecond per row; long tables are printed as plain text.
_FOLDED_ROWS_MAX = 200


def note(text: str) -> None:
    """Print one line about the work on standard error."""
    print(text, file=sys.stderr)


def warn(text: str) -> None:
    note(styled("warning: ", "yellow", sys.stderr) + text)


def print_json(value: object) -> None:
    """Print a document; with --watch each one on a line of its own (JSON lines)."""
    json.dump(value, sys.stdout, indent=None if _JsonLines.on else _JSON_INDENT, ensure_ascii=False)
    sys.stdout.write("\n")


class _JsonLines:
    on = False


@contextmanager
def json_lines() -> Iterator[None]:
    _JsonLines.on = True
    try:
        yield
    finally:
        _JsonLines.on = False


def print_rows(
    rows: Sequence[Row], columns: Sequence[str], output: Format, *, title: str = "", empty: str = ""
) -> None:
    """Print the rows with the named columns. JSON keeps every key of a row, and wide shows it.

    `empty` is printed on standard error if a table has no rows.
    """
    match output:
        case Format.JSON:
            print_json([dict(row) for row in rows])
        case Format.CSV:
            _print_csv(rows, columns)
        case Format.TABLE | Format.WIDE:
            if not rows and empty:
                note(empty)
            elif output is Format.WIDE:
                every = list(dict.fromkeys([*columns, *(name for row in rows for name in row)]))
                _print_table(rows, every, title, folds=False)
            else:
                _print_table(rows, columns, title)


def print_fields(fields: Row, output: Format, *, title: str = "") -> None:
    """Print one result with several values: names on the left, values on the right."""
    match output:
        case Format.JSON:
            print_json(dict(fields))
        case Format.CSV:
            _print_csv([fields], list(fields))
        case Format.TABLE | Format.WIDE:
            width = max((len(name) for name in fields), default=0)
            lines = [styled(title, "bold", sys.stdout)] if title else []
            for name, value in fields.items():
                lines.append(f"{styled(f'{_heading(name):<{width}}', 'bold', sys.stdout)} {cell(value)}".rstrip())
            print("\n".join(lines))


@contextmanager
def progress(
    description: str, total: int | None, *, unit: str = "records", hidden: bool = False
) -> Iterator[Callable[[int], None]]:
    """Provide a function that reports progress; a bar shows it if standard error is a terminal."""
    if hidden or not sys.stderr.isatty():
        yield lambda done: None
        return
    from odradek.apps.cli.terminal import progress_bar

    with progress_bar(description, total, unit) as show:
        yield show


def cell(value: object) -> str:
    """Format a value for a table or CSV."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case str():
            return value
        case int():
            return str(value)
        case float():
            return f"{value:,.2f}"
        case dict():
            return ",".join(f"{key}={item}" for key, item in value.items())
        case list() | tuple():
            return ",".join([cell(item) for item in value])
        case Iterable():
            return ",".join(cell(item) for item in value)
        case _:
            return str(value)


def bytes_as_text(data: bytes | None) -> str | None:
    """Format bytes of a record: UTF-8 as text, other bytes as \\x escapes."""
    return None if data is None else data.decode("utf-8", errors="backslashreplace")


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


def _print_table(rows: Sequence[Row], columns: Sequence[str], title: str, *, folds: bool = True) -> None:
    headings = [_heading(column) for column in columns]
    numeric = [bool(rows) and all(_is_number(row.get(column)) for row in rows) for column in columns]
    cells = [[cell(row.get(column)) for column in columns] for row in rows]
    if folds and sys.stdout.isatty() and len(rows) <= _FOLDED_ROWS_MAX:
        from odradek.apps.cli.terminal import print_folded

        print_folded(headings, numeric, cells, title)
    else:
        sys.stdout.write(text_table(headings, numeric, cells, title) + "\n\n")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _heading(column: str) -> str:
    return column.replace("_", " ")
