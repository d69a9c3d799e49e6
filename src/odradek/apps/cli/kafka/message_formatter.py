"""Output of kafka-console-consumer for a record, by its `--property` words."""

from collections.abc import Callable

from odradek.apps.cli.kafka.properties import is_true
from odradek.apps.cli.record_printing import Printer
from odradek.apps.cli.record_text import ConsumedRecord

_Part = Callable[[ConsumedRecord], bytes]


def formatter(properties: dict[str, str]) -> Printer:
    separator = properties.get("key.separator", "\t").encode()
    line_end = properties.get("line.separator", "\n").encode()
    null = properties.get("null.literal", "null").encode()
    headers_separator = properties.get("headers.separator", ",").encode()

    def headers(record: ConsumedRecord) -> bytes:
        pairs = [name.encode() + b":" + (null if value is None else value) for name, value in record.headers]
        return headers_separator.join(pairs) if pairs else b"NO_HEADERS"

    wanted: list[tuple[str, bool, _Part]] = [
        ("print.timestamp", False, _timestamp),
        ("print.partition", False, lambda record: b"Partition:%d" % record.partition),
        ("print.offset", False, lambda record: b"Offset:%d" % record.offset),
        ("print.headers", False, headers),
        ("print.key", False, lambda record: null if record.key is None else record.key),
        ("print.value", True, lambda record: null if record.value is None else record.value),
    ]
    parts = [part for name, default, part in wanted if is_true(properties, name, default)]
    return lambda record: separator.join([part(record) for part in parts]) + (line_end if parts else b"")


def _timestamp(record: ConsumedRecord) -> bytes:
    if record.timestamp_ms < 0:
        return b"NO_TIMESTAMP"
    return (b"LogAppendTime:%d" if record.is_append_time else b"CreateTime:%d") % record.timestamp_ms
