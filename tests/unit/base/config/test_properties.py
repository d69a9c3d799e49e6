"""Java's .properties format: what java.util.Properties reads, and a writer that it reads back."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.base.config.properties import format_properties, parse_properties
from odradek.base.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb=2", {"a": "1", "b": "2"}),
        ("a = 1\r\nb: 2\rc 3", {"a": "1", "b": "2", "c": "3"}),
        ("# comment\n! another\n\n   \n  a=1", {"a": "1"}),
        ("a=1\na=2", {"a": "2"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a==b", {"a": "=b"}),
        ("a = b = c ", {"a": "b = c "}),
        ("list=one,\\\n     two,\\\n     three", {"list": "one,two,three"}),
        ("path=c\\\\\nb=2", {"path": "c\\", "b": "2"}),
        ("a=1\\", {"a": "1"}),
        ("key\\ with\\:odd\\=signs=v", {"key with:odd=signs": "v"}),
        ("a=\\u00fcber\\t\\q", {"a": "über\tq"}),
        ("a=\\uD83D\\uDE00", {"a": "😀"}),
        ("a=1\\\n# not a comment", {"a": "1# not a comment"}),
        ("a=x#y!z", {"a": "x#y!z"}),
        ("listeners=PLAINTEXT://:9092", {"listeners": "PLAINTEXT://:9092"}),
    ],
)
def test_reads_what_java_reads(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_a_broken_unicode_escape_is_refused() -> None:
    with pytest.raises(ConfigError, match="malformed"):
        parse_properties("a=\\u12")


def test_writes_comment_and_ascii_only() -> None:
    text = format_properties({"a b": " x=ü"}, comment="made\nby hand")
    assert text == "#made\n#by hand\na\\ b=\\ x=\\u00FC\n"


properties = st.dictionaries(st.text(min_size=1), st.text())


@given(properties)
def test_what_is_written_reads_back(mapping: dict[str, str]) -> None:
    text = format_properties(mapping, comment="x")
    assert text.isascii()
    assert parse_properties(text) == mapping


@given(st.text(alphabet="ab=: \\\t\n\r#!u0"))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ConfigError):
        assert all(isinstance(value, str) for value in parse_properties(text).values())
