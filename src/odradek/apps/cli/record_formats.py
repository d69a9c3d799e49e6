"""Formats of the records that `consume` prints: text, a table, JSON and CSV, with or without decoders."""

import csv
import io
import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from odradek.apps.cli.output import bytes_as_text
from odradek.apps.cli.record_printing import Printer
from odradek.apps.cli.record_text import ConsumedRecord, compile_format, headers_as_bytes
from odradek.apps.cli.usage import WrongUsage

if TYPE_CHECKING:
    from odradek.apps.cli.record_decoding import RecordDecoding

_COLUMNS = ("topic", "partition", "offset", "timestamp_ms", "key", "value", "headers")
_TABLE_LINE = "{:>9}  {:>12}  {:<23}  {:<20}  {}\n"
_WIDE_LINE = "{:<20}  {:>9}  {:>12}  {:<23}  {:>8}  {:<20}  {:<30}  {}\n"


class RecordFormat(StrEnum):
    TEXT = "text"
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    WIDE = "wide"


Decodings = Mapping[str, "RecordDecoding"]
"""Decoders by topic."""


def record_printer(
    output: RecordFormat, format_string: str | None, text_format: str, decoding: Decodings | None
) -> Printer:
    if format_string is not None and output is not RecordFormat.TEXT:
        raise WrongUsage("--format-string makes text; leave --format out")
    match output:
        case RecordFormat.JSON:
            return lambda record: _as_json(record, decoding)
        case RecordFormat.CSV:
            printer: Printer = _as_csv
        case RecordFormat.TABLE:
            printer = _as_table_line
        case RecordFormat.WIDE:
            printer = _as_wide_line
        case RecordFormat.TEXT:
            try:
                printer = compile_format(text_format if format_string is None else format_string)
            except ValueError as error:
                raise WrongUsage(str(error), "--format-string") from None
    if decoding is None:
        return printer
    return lambda record: printer(decoding[record.topic].as_text(record))


def print_header(output: RecordFormat) -> None:
    if output is RecordFormat.CSV:
        sys.stdout.buffer.write(",".join(_COLUMNS).encode() + b"\n")
    if output is RecordFormat.WIDE:
        headings = ("topic", "partition", "offset", "time", "size", "key", "headers", "value")
        sys.stdout.buffer.write(_WIDE_LINE.format(*headings).encode())
    if output is RecordFormat.TABLE:
        sys.stdout.buffer.write(_TABLE_LINE.format("partition", "offset", "time", "key", "value").encode())


def _as_json(record: ConsumedRecord, decoding: Decodings | None) -> bytes:
    if decoding is None:
        key, value = bytes_as_text(record.key), bytes_as_text(record.value)
    else:
        key, value = decoding[record.topic].as_documents(record)
    fields = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": key,
        "value": value,
        "headers": [{"key": name, "value": bytes_as_text(value)} for name, value in record.headers],
    }
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", errors="backslashreplace") + b"\n"


def _as_csv(record: ConsumedRecord) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(
        (
            record.topic,
            record.partition,
            record.offset,
            record.timestamp_ms,
            bytes_as_text(record.key),
            bytes_as_text(record.value),
            bytes_as_text(headers_as_bytes(record.headers)),
        )
    )
    return line.getvalue().encode()


def _as_table_line(record: ConsumedRecord) -> bytes:
    """Format the record as one line; unprintable characters are escaped."""
    return _TABLE_LINE.format(
        record.partition,
        record.offset,
        _time(record.timestamp_ms),
        _printable(record.key),
        _printable(record.value),
    ).encode()


def _as_wide_line(record: ConsumedRecord) -> bytes:
    return _WIDE_LINE.format(
        record.topic,
        record.partition,
        record.offset,
        _time(record.timestamp_ms),
        len(record.value or b""),
        _printable(record.key),
        _printable(headers_as_bytes(record.headers)),
        _printable(record.value),
    ).encode()


def _time(timestamp_ms: int) -> str:
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")[:23]
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)


def _printable(data: bytes | None) -> str:
    text = "null" if data is None else data.decode("utf-8", errors="backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
