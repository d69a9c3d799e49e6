"""Text of keys and values: text, indented JSON, or hex. Long values are cut, with a remark."""

import json

from odradek.apps.figures import count, size_text
from odradek.apps.records.decoders import JSON_BYTES_MAX, NOTHING, Decoded

SHOWN_BYTES_MAX = 64 * 1024
LINE_LENGTH = 160
_HEX_WIDTH = 4  # characters for a byte


def as_text(data: bytes) -> str | None:
    """Return the bytes as text; None if they are not text."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if all(c.isprintable() or c in "\n\r\t" for c in text) else None


def as_json(data: bytes) -> str | None:
    """Return indented JSON; None if the value isn't an object or a list."""
    if len(data) > JSON_BYTES_MAX or data[:1] not in (b"{", b"["):
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
