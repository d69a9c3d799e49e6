r"""Java's .properties format, read and written.

A line is `key=value`, `key:value` or `key value`; `#` and `!` begin a comment. A backslash at the end of a line
continues it, before a letter it escapes (\t \n \r \f \uXXXX), before anything else it stands for that character.
A key that comes twice keeps its last value.
"""

import re
from collections.abc import Iterator, Mapping

from odradek.base.errors import ConfigError

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_UNESCAPES = {character: f"\\{letter}" for letter, character in _ESCAPES.items()}


def parse_properties(text: str) -> dict[str, str]:
    """Keys and values of a .properties text, in the order of their first appearance."""
    properties: dict[str, str] = {}
    for line in _logical_lines(text):
        key, value = _split(line)
        properties[_unescape(key)] = _unescape(value)
    return properties


def format_properties(properties: Mapping[str, str], comment: str | None = None) -> str:
    """A text that reads back as the same mapping, with characters outside ASCII escaped, as Java does."""
    lines = [] if comment is None else [f"#{line}" for line in comment.splitlines()]
    lines += [f"{_escape_key(key)}={_escape_value(value)}" for key, value in properties.items()]
    return "".join(f"{line}\n" for line in lines)


def _logical_lines(text: str) -> Iterator[str]:
    """Natural lines joined where they continue; blanks and comments left out."""
    pending: str | None = None
    for natural in re.split(r"\r\n|\r|\n", text):
        line = natural.lstrip(_BLANK)
        if pending is None and (not line or line[0] in "#!"):
            continue
        line = (pending or "") + line
        if _continues(natural):
            pending = line[:-1]
            continue
        pending = None
        yield line
    if pending:
        yield pending


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    """Cuts at the first separator that isn't escaped."""
    position = 0
    while position < len(line) and line[position] not in "=: \t\f":
        position += 2 if line[position] == "\\" else 1
    key, rest = line[:position], line[position:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return key, rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    joined = re.sub(r"\\(u[0-9a-fA-F]{4}|.|$)", lambda found: _unescaped(found[1]), text, flags=re.DOTALL)
    # Java writes characters beyond U+FFFF as two escapes.
    return joined.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _unescaped(escape: str) -> str:
    if escape.startswith("u"):
        if len(escape) != 5:
            raise ConfigError(r"malformed \uXXXX in a properties file")
        return chr(int(escape[1:], 16))
    return _ESCAPES.get(escape, escape)


def _escape_value(value: str) -> str:
    escaped = "".join(map(_escaped, value))
    # Only leading blanks would be lost.
    return "\\" + escaped if escaped.startswith(" ") else escaped


def _escape_key(key: str) -> str:
    """A key ends at the first separator, and a line that begins with # or ! is a comment."""
    return re.sub(r"([ =:#!])", r"\\\1", "".join(map(_escaped, key)))


def _escaped(character: str) -> str:
    if character in _UNESCAPES:
        return _UNESCAPES[character]
    if character == "\\":
        return "\\\\"
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i] << 8 | units[i + 1]:04X}" for i in range(0, len(units), 2))
