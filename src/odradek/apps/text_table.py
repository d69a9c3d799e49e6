"""Tables as plain text: columns side by side, numbers to the right, words to the left, a rule under the head."""

from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import Literal, NamedTuple
from unicodedata import combining, east_asian_width

Align = Literal["left", "right", "center"]


class Cell(NamedTuple):
    text: str
    style: str = ""


class Column(NamedTuple):
    heading: str
    cells: tuple[Cell, ...]
    align: Align = "left"

    @property
    def width(self) -> int:
        return max(display_width(text) for text in (self.heading, *(cell.text for cell in self.cells)))


def text_table(headings: Sequence[str], numeric: Sequence[bool], rows: Sequence[Sequence[str]], title: str = "") -> str:
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    form = "   ".join(f"{{:{'>' if right else '<'}{width}}}" for width, right in zip(widths, numeric, strict=True))
    lines = [*([title] if title else []), form.format(*headings), "─" * (sum(widths) + 3 * (len(widths) - 1))]
    lines += [form.format(*row) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def folded_table(
    columns: Sequence[Column], widths: Sequence[int], gap: int, style: Callable[[str, str], str]
) -> list[str]:
    """Return the lines of a table whose cells fold between words to the given widths. `style` draws a text."""
    head = [Cell(column.heading, "bold") for column in columns]
    rule = "─" * (sum(widths) + gap * (len(widths) - 1))
    lines = [*_row_lines(head, columns, widths, gap, style), rule]
    for row in zip(*(column.cells for column in columns), strict=True):
        lines += _row_lines(row, columns, widths, gap, style)
    return lines


def _row_lines(
    row: Sequence[Cell], columns: Sequence[Column], widths: Sequence[int], gap: int, style: Callable[[str, str], str]
) -> list[str]:
    folded = [fold(cell.text, width) for cell, width in zip(row, widths, strict=True)]
    lines = []
    for number in range(max(map(len, folded))):
        texts = [
            _aligned(part[number] if number < len(part) else "", cell.style, width, column.align, style)
            for part, cell, width, column in zip(folded, row, widths, columns, strict=True)
        ]
        lines.append((" " * gap).join(texts).rstrip())
    return lines


def _aligned(text: str, kind: str, width: int, align: Align, style: Callable[[str, str], str]) -> str:
    spare = max(width - display_width(text), 0)
    before = {"left": 0, "right": spare, "center": spare // 2}[align]
    drawn = style(text, kind) if text else ""
    return " " * before + drawn + " " * (spare - before)


def fold(text: str, width: int) -> list[str]:
    """Return the lines of a text that is too long for its column; words stay whole where they fit."""
    if display_width(text) <= width:
        return [text]
    return wrap(text, max(width, 1), break_on_hyphens=False) or [""]


def display_width(text: str) -> int:
    """Return the number of places that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(char) else 1 + (east_asian_width(char) in "WF") for char in text)
