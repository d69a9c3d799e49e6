"""Records as a table of lines that open, and the values that people type."""

import json
from collections.abc import Sequence
from datetime import datetime

from odradek.apps.console.markup import Html, link, tag, together
from odradek.apps.console.readings.records import (
    SCAN_SECONDS_MAX,
    SCANNED_BYTES_MAX,
    SCANNED_RECORDS_MAX,
    Found,
)
from odradek.apps.console.readings.tail import TailState
from odradek.apps.console.views.parts import button, chip
from odradek.apps.console.views.record_columns import USUAL_LINES, RecordLines
from odradek.apps.console.views.record_text import SHOWN_BYTES_MAX, decoded_whole, in_a_line
from odradek.apps.figures import count, plural, size_text
from odradek.apps.records.avro import framed_schema
from odradek.apps.records.decoders import NOTHING, Decoded
from odradek.apps.records.filters import SeenRecord
from odradek.client.moments import ago

_PAGE_BYTES_MAX = 1 << 20
_RECORD_BYTES_MIN = 4 * 1024
_MS_DIGITS_MIN, _MS_DIGITS_MAX = 10, 15


def tail_html(state: TailState, topic: str, lines: RecordLines = USUAL_LINES) -> Html:
    said = f"Live: scanned {count(state.scanned)} new, showing {count(len(state.records))}."
    if state.skipped:
        said += f" {plural(state.skipped, 'record')} skipped: the topic is written faster than it is shown."
    footer = tag("div", tag("span", said, cls="note grow"), cls="row-of beneath")
    if not state.records:
        return together(tag("div", "Waiting for new records…", cls="card empty"), footer)
    shown = [_record_html(item, topic, _RECORD_BYTES_MIN, lines) for item in state.records]
    return together(tag("div", lines.head(), shown, cls="card table", style=lines.style), footer)


def records_html(found: Found, topic: str, further: str = "Later", lines: RecordLines = USUAL_LINES) -> Html:
    """`further`: position of the next page, with later or older records."""
    more = button(f"{further} records ›", "more") if found.resume else None
    footer = tag("div", tag("span", coverage(found), cls="note grow"), more, cls="row-of beneath")
    if not found.records:
        return together(tag("div", "No record was found.", cls="card empty"), footer)
    limit = min(SHOWN_BYTES_MAX, max(_RECORD_BYTES_MIN, _PAGE_BYTES_MAX // len(found.records)))
    shown = [_record_html(item, topic, limit, lines) for item in found.records]
    return together(tag("div", lines.head(), shown, cls="card table", style=lines.style), footer)


def coverage(found: Found) -> str:
    looked = f"Scanned {count(found.scanned)}, showing {count(len(found.records))}"
    if found.is_complete:
        return f"{looked}."
    limits = f"{count(SCANNED_RECORDS_MAX)} records, {size_text(SCANNED_BYTES_MAX)} or {SCAN_SECONDS_MAX:.0f} seconds"
    return f"{looked}. A search ends after {limits}: go on, or narrow it by partition, offset or time."


def _record_html(item: SeenRecord, topic: str, limit: int, lines: RecordLines) -> Html:
    record = item.record
    kind, value = decoded_whole(item.value, limit)
    key_kind, key = decoded_whole(item.key, limit)
    place = link("messages", topic=topic, partition=item.partition, start="offset", at=record.offset)
    length = 0 if record.value is None else len(record.value)
    return tag(
        "details",
        lines.line(item),
        tag(
            "div",
            tag(
                "div",
                chip(f"value: {kind}"),
                chip(size_text(length)),
                chip(item.value.problem, "warn") if item.value.problem else _frame(item.value),
                tag("button", "Copy value", cls="btn small", data_copy="value"),
                tag("button", "Copy link", cls="btn small", data_copy="link", data_link=place),
                cls="row-of",
            ),
            tag("pre", value, cls="value", data_part="value"),
            together(tag("div", chip(f"key: {key_kind}")), tag("pre", key, cls="value")) if record.key else None,
            _headers_html(record.headers) if record.headers else None,
            cls="body",
        ),
        cls="record",
        data_offset=record.offset,
    )


def _frame(value: Decoded) -> Html | None:
    """Return the name of the schema of a value that was not decoded."""
    number = None if value.document is not NOTHING or not value.data else framed_schema(bytes(value.data))
    if number is None:
        return None
    return chip(f"looks framed by a schema registry: schema {number}; console --schema TOPIC=FILE decodes Avro", "warn")


def _headers_html(headers: Sequence[tuple[str, bytes | None]]) -> Html:
    lines = [f"{name}: {in_a_line(value)}" for name, value in headers[:200]]
    if len(headers) > len(lines):
        lines.append(f"… {len(headers) - len(lines)} more")
    return together(tag("div", chip(plural(len(headers), "header"))), tag("pre", "\n".join(lines), cls="value"))


def parse_when(text: str, now_ms: int) -> int:
    """`15m ago`, `2h`, a date and time of this machine, or milliseconds. ValueError names the valid forms."""
    stripped = text.strip()
    try:
        if (before_ms := ago(stripped, now_ms)) is not None:
            return before_ms
        if stripped.isdecimal() and _MS_DIGITS_MIN <= len(stripped) <= _MS_DIGITS_MAX:
            return int(stripped)
        return int(datetime.fromisoformat(stripped).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise ValueError(f"'{text[:40]}' is not a time like 15m ago, 2026-01-31 14:00 or milliseconds") from None


def parse_headers(text: str) -> tuple[tuple[str, bytes | None], ...]:
    """A header on each line: `name: value`."""
    headers: list[tuple[str, bytes | None]] = []
    for line in filter(None, (line.strip() for line in text.splitlines())):
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise ValueError(f"'{line[:40]}' is not a header like name: value")
        headers.append((name.strip(), value.strip().encode()))
    return tuple(headers)


def parse_value(text: str, kind: str) -> bytes | None:
    """Return the bytes of a typed value. ValueError describes the fault."""
    match kind:
        case "null":
            return None
        case "json":
            try:
                json.loads(text)
            except ValueError as error:
                raise ValueError(f"that is not JSON: {error}") from None
            return text.encode()
        case "hex":
            try:
                return bytes.fromhex(text)
            except ValueError:
                raise ValueError("that is not hex: two digits for each byte, like 00 ff") from None
        case _:
            return text.encode()
