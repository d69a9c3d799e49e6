"""Records as files: JSON lines and CSV. Text as text, documents as documents, other bytes as base64."""

import csv
import io
import json
from base64 import b64encode
from collections.abc import Iterable
from datetime import UTC, datetime

from odradek.apps.records.decoders import NOTHING, Decoded
from odradek.apps.records.filters import SeenRecord

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
COLUMNS = ("partition", "offset", "timestamp", "key", "value", "headers")


def json_lines(topic: str, records: Iterable[SeenRecord]) -> str:
    return "".join(json.dumps(_row(topic, seen), ensure_ascii=False) + "\n" for seen in records)


def csv_text(topic: str, records: Iterable[SeenRecord]) -> str:
    """Table with a head line. A cell that a spreadsheet would take for a formula gets an apostrophe before it."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for seen in records:
        row = _row(topic, seen)
        writer.writerow([_cell(row[column]) for column in COLUMNS])
    return out.getvalue()


def _row(topic: str, seen: SeenRecord) -> dict[str, object]:
    record = seen.record
    return {
        "topic": topic,
        "partition": seen.partition,
        "offset": record.offset,
        "timestamp": _iso(record.timestamp),
        "timestamp_ms": record.timestamp,
        "key": _exported(seen.key),
        "value": _exported(seen.value),
        "headers": [[name, None if value is None else _text_or_base64(value)] for name, value in record.headers],
    }


def _iso(ms: int) -> str | None:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None


def _exported(decoded: Decoded) -> object:
    if decoded.data is None:
        return None
    return _text_or_base64(decoded.data) if decoded.document is NOTHING else decoded.document


def _text_or_base64(data: bytes) -> object:
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def _cell(value: object) -> object:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if text.startswith(_FORMULA) and isinstance(value, str) else text
