"""Columns of a list of records: the usual ones, and any field that a filter knows, such as `value.amount`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from odradek.apps.console.markup import Html, tag
from odradek.apps.console.views.record_text import LINE_LENGTH, decoded_line
from odradek.apps.figures import count, moment, size_text
from odradek.apps.records.filters import TEXT_MAX, SeenRecord, texts_of

DEFAULT_COLUMNS = "timestamp, key, value, headers, size"
_COLUMNS_MAX = 10
_ROOMY_FROM = 4
"""Number of columns from which that of headers is left out where a page is narrow."""


@dataclass(frozen=True, slots=True)
class RecordColumn:
    name: str
    title: str
    text: Callable[[SeenRecord], str]
    width: str = "minmax(90px, 1fr)"
    narrow: str = ""
    """Width on a narrow page; that of a wide one where it is empty."""
    cls: str = "mono"


_PLACE = RecordColumn(
    "place", "Partition:Offset", lambda seen: f"{seen.partition} : {seen.record.offset:,}", "124px", "118px"
)
_USUAL = (
    RecordColumn("timestamp", "Timestamp", lambda seen: moment(seen.record.timestamp), "190px", "180px", "mono soft"),
    RecordColumn("key", "Key", lambda seen: decoded_line(seen.key), "180px", "minmax(90px, 1fr)"),
    RecordColumn("value", "Value", lambda seen: decoded_line(seen.value), "minmax(160px, 3fr)", "minmax(160px, 2fr)"),
    RecordColumn("headers", "Headers", lambda seen: _or_nothing(len(seen.record.headers)), "68px", cls="soft n"),
    RecordColumn("size", "Size", lambda seen: size_text(len(seen.record.value or b"")), "72px", "64px", "soft n"),
)
_KNOWN = {column.name: column for column in _USUAL}


def _or_nothing(number: int) -> str:
    return count(number) if number else ""


def parse_columns(text: str) -> tuple[RecordColumn, ...]:
    """Parse names separated by commas; the usual columns for an empty text. ValueError names the valid form."""
    if len(text) > TEXT_MAX:
        raise ValueError(f"columns have at most {TEXT_MAX} characters")
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if len(names) > _COLUMNS_MAX:
        raise ValueError(f"{len(names)} columns, and {_COLUMNS_MAX} at most can be shown")
    return tuple(_KNOWN.get(name) or _field(name) for name in names) or _USUAL


def _field(name: str) -> RecordColumn:
    text = texts_of(name)
    return RecordColumn(name, name, lambda seen: _cut(text(seen)))


def _cut(text: str) -> str:
    line = " ".join(text[: LINE_LENGTH * 4].split())
    return line if len(line) <= LINE_LENGTH else f"{line[:LINE_LENGTH]}…"


class RecordLines:
    """Head and lines of a table of records. On a phone a line has its place and one more column, if possible the
    value."""

    def __init__(self, columns: Sequence[RecordColumn]) -> None:
        self._columns = (_PLACE, *columns)
        names = [column.name for column in columns]
        phone = "value" if "value" in names else names[0]
        left_out = "headers" if len(names) > _ROOMY_FROM else ""
        self._cls = [
            " ".join(
                filter(
                    None,
                    [
                        column.cls,
                        "" if column.name in ("place", phone) else "hide-small",
                        "hide-narrow" if column.name == left_out else "",
                    ],
                )
            )
            for column in self._columns
        ]
        wide = " ".join(column.width for column in self._columns)
        narrow = " ".join(column.narrow or column.width for column in self._columns if column.name != left_out)
        self.style = f"--wide: {wide}; --narrow: {narrow}"
        """Style of the element around head and lines."""

    def head(self) -> Html:
        cells = [
            tag("span", column.title, cls=cls.replace("mono", "").replace("soft", "").strip(), title=column.title)
            for column, cls in zip(self._columns, self._cls, strict=True)
        ]
        return tag("div", cells, cls="record-head")

    def line(self, seen: SeenRecord) -> Html:
        cells = [
            tag("span", column.text(seen), cls=cls, title=column.title)
            for column, cls in zip(self._columns, self._cls, strict=True)
        ]
        return tag("summary", cells)


USUAL_LINES = RecordLines(_USUAL)
