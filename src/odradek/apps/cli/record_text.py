"""Records as text: lines to records (`produce`), and records to lines (`consume`).

Pure functions over bytes. The content of a record is never changed: bytes that aren't text pass through unchanged.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from odradek.client.record_sender import Headers

FORMAT_TOKENS = {
    "t": "topic",
    "p": "partition",
    "o": "offset",
    "T": "timestamp in ms",
    "k": "key",
    "K": "length of the key, -1 for null",
    "s": "value",
    "S": "length of the value, -1 for null",
    "h": "headers",
    "%": "a percent sign",
}
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}


class Decode(StrEnum):
    """Ways to show keys and values; `auto` decodes internal topics and topics with a schema, and nothing else."""

    AUTO = "auto"
    TEXT = "text"
    JSON = "json"
    HEX = "hex"
    BASE64 = "base64"
    AVRO = "avro"
    GROUPS = "groups"
    TRANSACTIONS = "transactions"


@dataclass(frozen=True, slots=True)
class ConsumedRecord:
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    is_append_time: bool = False  # the timestamp is the broker's, not the producer's


@dataclass(frozen=True, slots=True)
class LineRules:
    """Rules by which the lines that `produce` reads become records."""

    key_separator: bytes | None = None  # None: the whole line is the value
    with_headers: bool = False  # the line opens with "name:value,name:value" and a tab
    null_marker: bytes | None = None  # text of a key or value that stands for null
    fixed_headers: Headers = ()
    headers_delimiter: bytes = b"\t"  # after all headers
    headers_separator: bytes = b","  # between two
    headers_key_separator: bytes = b":"  # between a header's name and value
    ignores_errors: bool = False  # missing parts of a line are null


class LineError(ValueError):
    """A line that doesn't have the parts its rules ask for."""


def parse_line(line: bytes, rules: LineRules) -> tuple[bytes | None, bytes | None, Headers]:
    """Return the key, the value and the headers of a line without its line end."""
    headers = rules.fixed_headers
    if rules.with_headers:
        head, found, rest = line.partition(rules.headers_delimiter)
        if found:
            headers += _parse_headers(head, rules)
            line = rest
        elif not rules.ignores_errors:
            raise LineError(
                "no headers delimiter in the line; by default it looks like name:value,name:value<TAB>record"
            )
    key: bytes | None = None
    if rules.key_separator is not None:
        before, found, rest = line.partition(rules.key_separator)
        if found:
            key, line = before, rest
        elif not rules.ignores_errors:
            raise LineError(f"no key separator {rules.key_separator.decode(errors='backslashreplace')!r} in the line")
    return _null_or(key, rules.null_marker), _null_or(line, rules.null_marker), headers


def _parse_headers(text: bytes, rules: LineRules) -> Headers:
    headers: list[tuple[str, bytes | None]] = []
    for item in text.split(rules.headers_separator) if text and text != rules.null_marker else ():
        name, colon, value = item.partition(rules.headers_key_separator)
        if not colon and not rules.ignores_errors:
            raise LineError(f"header {item.decode(errors='backslashreplace')!r} is not of the form name:value")
        headers.append((name.decode("utf-8", errors="replace"), _null_or(value, rules.null_marker) if colon else None))
    return tuple(headers)


def _null_or(data: bytes | None, null_marker: bytes | None) -> bytes | None:
    return None if data is None or data == null_marker else data


def unescape(text: str) -> bytes:
    r"""Return the bytes that \n \t \r \0 \\ and \xNN stand for; other text as UTF-8."""
    out = bytearray()
    for part in re.split(r"(\\x[0-9a-fA-F]{2}|\\.)", text):
        if part.startswith("\\x") and len(part) == 4:
            out.append(int(part[2:], 16))
        elif len(part) == 2 and part[0] == "\\" and part[1] in _ESCAPES:
            out += _ESCAPES[part[1]]
        else:
            out += part.encode()
    return bytes(out)


def compile_format(text: str) -> Callable[[ConsumedRecord], bytes]:
    """Make a printer for a format like kcat's, e.g. `%p %o %k: %s\\n`. Raises ValueError for an unknown token."""
    parts: list[Callable[[ConsumedRecord], bytes]] = []
    for literal, token in re.findall(r"([^%]+)|%(.?)", text, flags=re.DOTALL):
        if literal:
            parts.append(_constant(unescape(literal)))
        elif token in _PRINTERS:
            parts.append(_PRINTERS[token])
        else:
            known = ", ".join(f"%{name} {meaning}" for name, meaning in FORMAT_TOKENS.items())
            raise ValueError(f"'%{token}' is not known; use {known}")
    return lambda record: b"".join([part(record) for part in parts])


def format_from_flags(
    *, timestamp: bool, partition: bool, offset: bool, headers: bool, key: bool, separator: str
) -> str:
    """Return the format with the value and the other requested parts, in the order of Kafka's console consumer."""
    wanted = [(timestamp, "%T"), (partition, "%p"), (offset, "%o"), (headers, "%h"), (key, "%k"), (True, "%s")]
    # A percent sign in the separator must not begin a token.
    return separator.replace("%", "%%").join(token for on, token in wanted if on) + "\\n"


def _constant(data: bytes) -> Callable[[ConsumedRecord], bytes]:
    return lambda _record: data


def _length(data: bytes | None) -> bytes:
    return b"-1" if data is None else b"%d" % len(data)


def headers_as_bytes(headers: Headers) -> bytes:
    return b",".join(name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in headers)


_PRINTERS: dict[str, Callable[[ConsumedRecord], bytes]] = {
    "t": lambda r: r.topic.encode(),
    "p": lambda r: b"%d" % r.partition,
    "o": lambda r: b"%d" % r.offset,
    "T": lambda r: b"%d" % r.timestamp_ms,
    "k": lambda r: b"" if r.key is None else r.key,
    "K": lambda r: _length(r.key),
    "s": lambda r: b"" if r.value is None else r.value,
    "S": lambda r: _length(r.value),
    "h": lambda r: headers_as_bytes(r.headers),
    "%": lambda _r: b"%",
}
