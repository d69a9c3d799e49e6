"""Filters over records: an expression that is parsed to data and compared, never run.

    error                                  the word anywhere in key, value or headers
    key = "42" and value.amount > 100      fields of JSON or of a decoded value, by their path
    header.trace ~ "^a.*z$" or not (partition = 3 or value.status in "open closed")

Fields: key, value, value.PATH, key.PATH, header.NAME, partition, offset, timestamp (ms or ISO), size. Comparisons:
= (or ==) != < <= > >=, `~` and `!~` with a regular expression (RE2: its time grows with the text, whatever the
expression), `has` for a part of the text, `in` for one of several words. `and`, `or`, `not`, parentheses.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Final

from odradek.apps.records.decoders import NOTHING, Decoded, Decoder
from odradek.protocol.records import Record

TEXT_MAX = 1_000
_DEPTH_MAX = 30
_TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<op>!=|<=|>=|!~|==|[=<>~()])|(?P<word>[^\s"'=<>~!()]+))"""
)
_OPERATORS: Final = ("=", "!=", "<", "<=", ">", ">=", "~", "!~", "has", "in")
_NUMBERS: Final = ("partition", "offset", "timestamp", "size")


class FilterError(ValueError):
    """Invalid expression; the message is for the user."""


class SeenRecord:
    """A record as filters see it: decoded when a comparison needs it."""

    def __init__(self, partition: int, record: Record, decoder: Decoder) -> None:
        self.partition = partition
        self.record = record
        self._decoder = decoder

    @cached_property
    def key(self) -> Decoded:
        return self._decoder.key(self.record)

    @cached_property
    def value(self) -> Decoded:
        return self._decoder.value(self.record)

    def parts(self) -> Iterable[bytes]:
        """Parts of the record with text; also the documents of decoded parts."""
        record = self.record
        yield record.key or b""
        yield record.value or b""
        for name, value in record.headers:
            yield name.encode()
            yield value or b""
        for decoded in (self.key, self.value):
            if decoded.document is not NOTHING and decoded.kind != "JSON":
                yield json.dumps(decoded.document, ensure_ascii=False).encode()


Filter = Callable[[SeenRecord], bool]


def everything(seen: SeenRecord) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    is_quoted: bool


Search = Callable[[str], Callable[[str], bool]]
"""Maker of a test of texts from a regular expression; FilterError for one that isn't valid."""


def bounded_search(pattern: str) -> Callable[[str], bool]:
    """Compile with RE2, whose time grows with the text alone: for expressions of other users."""
    try:
        import re2
    except ModuleNotFoundError:
        raise FilterError("regular expressions need RE2: pip install 'odradek[console]'") from None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 8 << 20
    try:
        compiled = re2.compile(pattern, options=options)
    except re2.error as error:
        raise FilterError(f"invalid regular expression: {error}") from None
    return lambda text: compiled.search(text) is not None


def own_search(pattern: str) -> Callable[[str], bool]:
    """Compile with RE2 where it is installed, else with Python's engine: for expressions of this process's own user."""
    if find_spec("re2") is not None:
        return bounded_search(pattern)
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise FilterError(f"invalid regular expression: {error}") from None
    return lambda text: compiled.search(text) is not None


def parse_filter(text: str, search: Search = bounded_search) -> Filter:
    """Parse a filter; FilterError names the problem. An empty text matches every record."""
    if len(text) > TEXT_MAX:
        raise FilterError(f"a filter has at most {TEXT_MAX} characters")
    tokens = _tokens(text)
    if not tokens:
        return everything
    parser = _Parser(tokens, search)
    found = parser.either(0)
    if parser.rest:
        raise FilterError(f"'{parser.rest[0].text}' is not expected here: combine with and, or, not")
    return found


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at, text = 0, text.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise FilterError(f"a quotation mark is missing, or '{text[at : at + 10].strip()}' is not understood")
        quoted = found["quoted"]
        token = found["op"] or found["word"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted[1:-1])
        if quoted is not None and found["op"] is None:
            # a regular expression keeps its backslashes: only quotes and backslashes are taken back
            token = re.sub(r"\\([\"'\\])", r"\1", quoted[1:-1])
        tokens.append(_Token("=" if found["op"] == "==" else token or "", quoted is not None))
        at = found.end()
    return tokens


class _Parser:
    def __init__(self, tokens: list[_Token], search: Search) -> None:
        self.rest = tokens
        self._search = search

    def either(self, depth: int) -> Filter:
        terms = [self._all(depth)]
        while self._skip("or"):
            terms.append(self._all(depth))
        return terms[0] if len(terms) == 1 else lambda seen: any(term(seen) for term in terms)

    def _all(self, depth: int) -> Filter:
        terms = [self._one(depth)]
        while self._skip("and"):
            terms.append(self._one(depth))
        return terms[0] if len(terms) == 1 else lambda seen: all(term(seen) for term in terms)

    def _one(self, depth: int) -> Filter:
        if depth > _DEPTH_MAX:
            raise FilterError("nested too deeply")
        if self._skip("not"):
            inner = self._one(depth + 1)
            return lambda seen: not inner(seen)
        if self._skip("("):
            inner = self.either(depth + 1)
            if not self._skip(")"):
                raise FilterError("a ) is missing")
            return inner
        return self._comparison()

    def _comparison(self) -> Filter:
        if not self.rest:
            raise FilterError("something is missing at the end")
        first = self.rest.pop(0)
        if not first.is_quoted and first.text in (*_OPERATORS, ")", "and", "or"):
            raise FilterError(f"'{first.text}' is not expected here")
        if not self.rest or self.rest[0].is_quoted or self.rest[0].text not in _OPERATORS:
            return _anywhere(first.text)
        operator = self.rest.pop(0).text
        if not self.rest or (not self.rest[0].is_quoted and self.rest[0].text in (*_OPERATORS, "(", ")")):
            raise FilterError(f"a value is missing after {operator}")
        return _comparison(first.text, operator, self.rest.pop(0), self._search)

    def _skip(self, word: str) -> bool:
        if self.rest and not self.rest[0].is_quoted and self.rest[0].text.lower() == word:
            self.rest.pop(0)
            return True
        return False


def _anywhere(text: str) -> Filter:
    wanted = text.encode().lower()
    return lambda seen: any(wanted in part.lower() for part in seen.parts())


def _comparison(field: str, operator: str, wanted: _Token, search: Search) -> Filter:
    values = _values_of(field)
    if operator in ("~", "!~"):
        fits = _matches(search(wanted.text), is_negated=operator == "!~")
    else:
        fits = _compares(operator, wanted, field)
    if operator in ("!=", "!~"):  # true also where there is no such field
        return lambda seen: all(fits(value) for value in values(seen))
    return lambda seen: any(fits(value) for value in values(seen))


def _values_of(field: str) -> Callable[[SeenRecord], Iterable[Any]]:
    """Return the values that a field has in a record: none, one, or of a header several."""
    name, _, path = field.partition(".")
    if name == "header" and path:
        return lambda seen: [_as_text(value or b"") for header, value in seen.record.headers if header == path]
    if name in ("key", "value"):
        if not path:
            return lambda seen: [_as_text(getattr(seen.record, name) or b"")]
        steps = path.split(".")
        return lambda seen: _at(getattr(seen, name).document, steps)
    match field:
        case "partition":
            return lambda seen: [seen.partition]
        case "offset":
            return lambda seen: [seen.record.offset]
        case "timestamp":
            return lambda seen: [seen.record.timestamp]
        case "size":
            return lambda seen: [len(seen.record.value or b"")]
    raise FilterError(
        f"'{field}' is not a field: key, value, value.PATH, header.NAME, partition, offset, timestamp, size"
    )


def texts_of(field: str) -> Callable[[SeenRecord], str]:
    """Return the text of a field for a table, several values with commas; FilterError if there is no such field."""
    values = _values_of(field)
    return lambda seen: ", ".join(map(_words, values(seen)))


def _compares(operator: str, wanted: _Token, field: str) -> Callable[[Any], bool]:
    if operator == "has":
        part = wanted.text.lower()
        return lambda value: part in _words(value).lower()
    if operator == "in":
        words = frozenset(re.split(r"[\s,]+", wanted.text))
        return lambda value: _words(value) in words
    number = _number(wanted, field)
    text = wanted.text
    match operator:
        case "=":
            return lambda value: _equal(value, text, number)
        case "!=":
            return lambda value: not _equal(value, text, number)
    if number is None:
        raise FilterError(f"{operator} compares numbers, and '{wanted.text}' is not one")
    limit = number
    orders: dict[str, Callable[[float], bool]] = {
        "<": lambda value: value < limit,
        "<=": lambda value: value <= limit,
        ">": lambda value: value > limit,
        ">=": lambda value: value >= limit,
    }
    order = orders[operator]
    return lambda value: (held := _as_number(value)) is not None and order(held)


def _matches(matches: Callable[[str], bool], *, is_negated: bool) -> Callable[[Any], bool]:
    return lambda value: matches(_words(value)) is not is_negated


def _number(wanted: _Token, field: str) -> float | None:
    if field == "timestamp" and not wanted.text.isdecimal():
        try:
            return datetime.fromisoformat(wanted.text).timestamp() * 1000
        except (ValueError, OverflowError):
            raise FilterError(f"'{wanted.text}' is not a time: ms, or as 2026-01-31T14:00") from None
    if field in _NUMBERS and _as_number(wanted.text) is None:
        raise FilterError(f"{field} is a number, and '{wanted.text}' is not one")
    return None if wanted.is_quoted else _as_number(wanted.text)


def _equal(value: Any, text: str, number: float | None) -> bool:
    if number is not None and isinstance(value, int | float) and not isinstance(value, bool):
        return value == number
    return _words(value) == text


def _as_number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    try:
        return float(value) if isinstance(value, str) and len(value) <= 40 else None
    except ValueError:
        return None


def _words(value: Any) -> str:
    """Text of a value as a user types it: texts unchanged, true and null as in JSON, objects as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _as_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _at(document: Any, steps: list[str]) -> list[Any]:
    """Return the value at the path, or nothing if there is none; numbers in a path are positions in a list."""
    found = document
    for step in steps:
        if isinstance(found, list) and step.isdecimal() and int(step) < len(found):
            found = found[int(step)]
        elif isinstance(found, dict) and step in found:
            found = found[step]
        else:
            return []
    return [found]
