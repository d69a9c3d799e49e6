"""Records for people: text as text, JSON with indents, anything else as hex. Long ones are cut, and say so."""

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
from odradek.apps.figures import count, moment, plural, size_text
from odradek.apps.records.avro import framed_schema
from odradek.apps.records.decoders import NOTHING, Decoded
from odradek.apps.records.filters import SeenRecord
from odradek.client.moments import ago

SHOWN_BYTES_MAX = 64 * 1024
LINE_LENGTH = 160
_PAGE_BYTES_MAX = 1 << 20
_RECORD_BYTES_MIN = 4 * 1024
_HEX_WIDTH = 4  # characters for a byte
_JSON_BYTES_MAX = 256 * 1024
_MS_DIGITS_MIN, _MS_DIGITS_MAX = 10, 15


def as_text(data: bytes) -> str | None:
    """Return the bytes as text; None if they are not text."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if all(c.isprintable() or c in "\n\r\t" for c in text) else None


def as_json(data: bytes) -> str | None:
    """Indented JSON; None if it isn't an object or a list."""
    if len(data) > _JSON_BYTES_MAX or data[:1] not in (b"{", b"["):
        return None
    try:
        return json.dumps(json.loads(data), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def as_hex(data: bytes) -> str:
    """`00000000  48 65 6c 6c 6f  Hello`"""
    lines = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "·" for byte in row)
        lines.append(f"{at:08x}  {row.hex(' '):<47}  {shown}")
    return "\n".join(lines)


def in_a_line(data: bytes | None) -> str:
    if data is None:
        return "∅"
    text = as_text(data[: LINE_LENGTH * 4])
    if text is None:
        text = as_text(data[: LINE_LENGTH * 4 - 3])  # a character may have been cut through
    shown = " ".join(text.split()) if text is not None else data[: LINE_LENGTH // 3].hex(" ")
    return shown if len(shown) <= LINE_LENGTH else f"{shown[:LINE_LENGTH]}…"


def whole(data: bytes | None, limit: int = SHOWN_BYTES_MAX) -> tuple[str, str]:
    """Return the kind of a value, and the value."""
    if data is None:
        return "null", "∅  (a tombstone)"
    document = as_json(data)
    if document is not None:
        return "JSON", _cut(document, limit)
    head = data[:limit]
    text = as_text(head) if len(data) <= limit else _first_text(head)
    more = f"\n… {size_text(len(data) - len(head))} more" if len(data) > len(head) else ""
    if text is not None:
        return "text", text + more
    shown = data[: limit // _HEX_WIDTH]
    more = f"\n… {size_text(len(data) - len(shown))} more" if len(data) > len(shown) else ""
    return "bytes", as_hex(shown) + more


def decoded_line(decoded: Decoded) -> str:
    if decoded.document is NOTHING or decoded.kind == "JSON" or decoded.data is None:
        return in_a_line(decoded.data)
    shown = json.dumps(decoded.document, ensure_ascii=False)
    return shown if len(shown) <= LINE_LENGTH else f"{shown[:LINE_LENGTH]}…"


def decoded_whole(decoded: Decoded, limit: int = SHOWN_BYTES_MAX) -> tuple[str, str]:
    """Return the kind of a decoded value, and the value as text."""
    if decoded.document is not NOTHING:
        return decoded.kind, _cut(json.dumps(decoded.document, indent=2, ensure_ascii=False), limit)
    if decoded.kind == "bytes" and decoded.data is not None:
        return "bytes", as_hex(decoded.data[: limit // _HEX_WIDTH])
    if decoded.kind == "text" and decoded.data is not None:
        return "text", _cut(decoded.data[:limit].decode("utf-8", "replace"), limit)
    return whole(decoded.data, limit)


def _first_text(head: bytes) -> str | None:
    """The text of a piece that may end inside a character."""
    return next((text for cut in range(4) if (text := as_text(head[: len(head) - cut])) is not None), None)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}\n… {count(len(text))} characters in all"


def tail_html(state: TailState, topic: str) -> Html:
    said = f"Live: scanned {count(state.scanned)} new, showing {count(len(state.records))}."
    if state.skipped:
        said += f" {plural(state.skipped, 'record')} skipped: the topic is written faster than it is shown."
    footer = tag("div", tag("span", said, cls="note grow"), cls="row-of beneath")
    if not state.records:
        return together(tag("div", "Waiting for new records…", cls="card empty"), footer)
    shown = [_record_html(item, topic, _RECORD_BYTES_MIN) for item in state.records]
    return together(tag("div", _HEAD, shown, cls="card table"), footer)


def records_html(found: Found, topic: str, further: str = "Later") -> Html:
    """`further` is where going on leads: to later records, or to older ones."""
    more = button(f"{further} records ›", "more") if found.resume else None
    footer = tag("div", tag("span", coverage(found), cls="note grow"), more, cls="row-of beneath")
    if not found.records:
        return together(tag("div", "No record was found.", cls="card empty"), footer)
    limit = min(SHOWN_BYTES_MAX, max(_RECORD_BYTES_MIN, _PAGE_BYTES_MAX // len(found.records)))
    shown = [_record_html(item, topic, limit) for item in found.records]
    return together(tag("div", _HEAD, shown, cls="card table"), footer)


_HEAD = tag(
    "div",
    [tag("span", title) for title in ("Partition:Offset", "Timestamp", "Key", "Value", "Headers", "Size")],
    cls="record-head",
)


def coverage(found: Found) -> str:
    looked = f"Scanned {count(found.scanned)}, showing {count(len(found.records))}"
    if found.is_complete:
        return f"{looked}."
    limits = f"{count(SCANNED_RECORDS_MAX)} records, {size_text(SCANNED_BYTES_MAX)} or {SCAN_SECONDS_MAX:.0f} seconds"
    return f"{looked}. A search ends after {limits}: go on, or narrow it by partition, offset or time."


def _record_html(item: SeenRecord, topic: str, limit: int) -> Html:
    record = item.record
    kind, value = decoded_whole(item.value, limit)
    key_kind, key = decoded_whole(item.key, limit)
    place = link("messages", topic=topic, partition=item.partition, start="offset", at=record.offset)
    length = 0 if record.value is None else len(record.value)
    return tag(
        "details",
        tag(
            "summary",
            tag("span", f"{item.partition} : {record.offset:,}", cls="mono", title="partition : offset"),
            tag("span", moment(record.timestamp), cls="mono soft"),
            tag("span", decoded_line(item.key), cls="mono", title="key"),
            tag("span", decoded_line(item.value), cls="mono"),
            tag("span", count(len(record.headers)) if record.headers else "", cls="soft n", title="headers"),
            tag("span", size_text(length), cls="soft n"),
        ),
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
    """Name the schema of a value that nothing has decoded."""
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
    """`15m ago`, `2h`, a date and time of this machine, or milliseconds. ValueError says what is right."""
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
    """Return the bytes of a typed value. ValueError says what is wrong."""
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
