"""Output that only a terminal shows: tables that fold and have colours, progress bars. Rich comes in by this door.

Loading rich takes as long as asking a cluster, so `output` comes here only where there is a terminal.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

# Rich folds cells at 80 columns where there's no terminal to ask; a file or a pipe has no such edge.
_WIDTH_WITHOUT_TERMINAL = 10_000
_WORD_WIDTH_MAX = 24


def data_console() -> Console:
    """Standard output. Made anew for each use, so that it follows a redirected `sys.stdout`."""
    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL, highlight=False)


def note_console(file: TextIO | None = None) -> Console:
    """Console on standard error, or on its substitute; texts are never read as markup."""
    file = file or sys.stderr
    return Console(file=file, width=None if file.isatty() else _WIDTH_WITHOUT_TERMINAL, highlight=False, markup=False)


def print_folded(headings: Sequence[str], numeric: Sequence[bool], rows: Sequence[Sequence[str]], title: str) -> None:
    """Print a table that fits the terminal: columns move together, empty ones go, and at last rows become blocks."""
    console = data_console()
    columns = [_Column(*column) for column in zip(headings, numeric, zip(*rows, strict=True), strict=True)]
    tight = sum(column.width + 3 for column in columns) > console.width
    shown = [column for column in columns if any(column.cells) or not tight]
    if title:  # rich would fold a title to the width of its table
        console.print(Text(title, style="bold"))
    spare = console.width - 1 - sum(column.width_of_words + 1 for column in shown)
    if spare < 0:
        _print_blocks(console, shown)
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 0 if tight else 1))
    for column, width in zip(shown, _widths(shown, spare), strict=True):
        justify: Literal["right", "left"] = "right" if column.is_number else "left"
        table.add_column(column.heading, justify=justify, overflow="fold", width=width)
    for row in zip(*(column.cells for column in shown), strict=True):
        table.add_row(*map(Text, row))
    console.print(table)


def _widths(columns: "Sequence[_Column]", spare: int) -> list[int]:
    """Return widths at which every word is whole and as many columns as possible share a line: the narrowest get theirs
    first.
    """
    widths = [column.width_of_words for column in columns]
    for index in sorted(range(len(columns)), key=lambda index: columns[index].width - widths[index]):
        more = min(columns[index].width - widths[index], spare)
        widths[index] += more
        spare -= more
    return widths


def _print_blocks(console: Console, columns: "Sequence[_Column]") -> None:
    """A row below the other, each value after its name: better than a table that breaks words."""
    width = max(len(column.heading) for column in columns)
    for row in zip(*(column.cells for column in columns), strict=True):
        console.print()
        for column, value in zip(columns, row, strict=True):
            if value:
                console.print(Text.assemble((f"{column.heading:<{width}} ", "bold"), value))


class _Column(NamedTuple):
    heading: str
    is_number: bool
    cells: tuple[str, ...]

    @property
    def width(self) -> int:
        return max(map(len, (self.heading, *self.cells)))

    @property
    def width_of_words(self) -> int:
        """So that rich folds between words, unless they are very long."""
        words = [word for text in (self.heading, *self.cells) for word in text.split()]
        return min(max(map(len, words), default=0), _WORD_WIDTH_MAX)


@contextmanager
def progress_bar(description: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
    """Gives a function that is told how much is done."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit))
    with Progress(*columns, TimeRemainingColumn(), console=note_console(), transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda done: bar.update(task, completed=done)
