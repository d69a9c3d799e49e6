"""Output that only a terminal shows: tables that fold and have colours, a line that shows progress."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TextIO

from odradek.apps.cli.colour import styled
from odradek.apps.figures import time_left_text
from odradek.apps.text_table import Cell, Column, display_width, fold, folded_table

# Files and pipes have no width.
_WIDTH_WITHOUT_TERMINAL = 10_000
_WIDTH_OF_UNKNOWN_TERMINAL = 80
_WORD_WIDTH_MAX = 24
_GAP = 3
_BAR_WIDTH = 30
_REDRAW_SECONDS = 0.1


def say(text: str, style: str = "") -> None:
    """Print a line of data, with a style where standard output is a terminal."""
    print(styled(text, style, sys.stdout))


def width_of(stream: TextIO) -> int:
    if not stream.isatty():
        return _WIDTH_WITHOUT_TERMINAL
    if (given := os.environ.get("COLUMNS", "")).isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _WIDTH_OF_UNKNOWN_TERMINAL
    except (OSError, ValueError):
        return _WIDTH_OF_UNKNOWN_TERMINAL


def print_columns(columns: Sequence[Column]) -> None:
    """Print a table as wide as it is."""
    style = partial(styled, stream=sys.stdout)
    print("\n".join(folded_table(columns, [column.width for column in columns], _GAP, style)) + "\n")


def print_folded(headings: Sequence[str], numeric: Sequence[bool], rows: Sequence[Sequence[str]], title: str) -> None:
    """Print a table that fits the terminal: columns get narrower, empty ones are omitted, and in the end rows become
    blocks."""
    width = width_of(sys.stdout)
    columns = [
        Column(heading, tuple(map(Cell, cells)), "right" if is_number else "left")
        for heading, is_number, cells in zip(
            headings, numeric, zip(*rows, strict=True) if rows else [()] * len(headings), strict=True
        )
    ]
    tight = sum(column.width + _GAP for column in columns) - _GAP > width
    shown = [column for column in columns if any(cell.text for cell in column.cells) or not tight]
    gap = 1 if tight else _GAP
    if title:
        say(title, "bold")
    spare = width - sum(_width_of_words(column) + gap for column in shown) + gap
    if spare < 0:
        _print_blocks(shown, width)
        return
    style = partial(styled, stream=sys.stdout)
    print("\n".join(folded_table(shown, _widths(shown, spare), gap, style)) + "\n")


def _widths(columns: Sequence[Column], spare: int) -> list[int]:
    """Return widths at which every word is whole and as many columns as possible share a line: the narrowest get theirs
    first.
    """
    widths = [_width_of_words(column) for column in columns]
    for index in sorted(range(len(columns)), key=lambda index: columns[index].width - widths[index]):
        more = min(columns[index].width - widths[index], spare)
        widths[index] += more
        spare -= more
    return widths


def _print_blocks(columns: Sequence[Column], width: int) -> None:
    """Print rows as blocks, each value after its name: better than a table that breaks words."""
    left = max(len(column.heading) for column in columns)
    for row in zip(*(column.cells for column in columns), strict=True):
        print()
        for column, cell in zip(columns, row, strict=True):
            if cell.text:
                fits = left + 1 + display_width(cell.text) <= width
                print(styled(f"{column.heading:<{left}}", "bold", sys.stdout), end=" " if fits else "\n")
                print(cell.text if fits else "\n".join(fold(cell.text, width)))


def _width_of_words(column: Column) -> int:
    """Return the width at which text folds between words, unless they are very long."""
    words = [word for text in (column.heading, *(cell.text for cell in column.cells)) for word in text.split()]
    return min(max(map(display_width, words), default=0), _WORD_WIDTH_MAX)


class ProgressLine:
    """One line at the bottom of a terminal, redrawn by `show`, removed by `close`. Without a terminal nothing is
    drawn."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self.is_shown = self._stream.isatty()
        self._drawn_at = 0.0

    def show(self, before: str, part: float | None = None, after: str = "") -> None:
        """`part`: the share that is done, as a bar."""
        now = time.monotonic()
        if not self.is_shown or (now - self._drawn_at < _REDRAW_SECONDS and (part is None or part < 1)):
            return
        self._drawn_at = now
        bar = [] if part is None else [_bar(part)]
        text = " ".join([before, *bar, after]).rstrip()[: width_of(self._stream) - 1]
        self._stream.write(f"\r{text}\x1b[K")
        self._stream.flush()

    def close(self) -> None:
        if self.is_shown and self._drawn_at:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def _bar(part: float) -> str:
    done = round(min(max(part, 0.0), 1.0) * _BAR_WIDTH)
    return "━" * done + "┄" * (_BAR_WIDTH - done)


@contextmanager
def progress_bar(description: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
    """Provide a function that shows the progress."""
    line = ProgressLine()
    began = time.monotonic()

    def show(done: int) -> None:
        if not total:
            line.show(description, None, f"{done:,} {unit}")
            return
        passed = time.monotonic() - began
        left = f", {time_left_text(passed / done * (total - done))} left" if 0 < done < total else ""
        line.show(description, done / total, f"{done:,} of {total:,} {unit}{left}")

    try:
        yield show
    finally:
        line.close()
