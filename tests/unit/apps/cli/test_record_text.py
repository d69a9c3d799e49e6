"""Lines to records and back."""

import pytest

from odradek.apps.cli.record_text import (
    ConsumedRecord,
    LineError,
    LineRules,
    compile_format,
    format_from_flags,
    parse_line,
    unescape,
)

RECORD = ConsumedRecord("orders", 2, 17, 1_700_000_000_000, b"key", b"value", (("trace", b"a1"), ("empty", None)))


def test_a_line_is_a_value_unless_told_otherwise() -> None:
    assert parse_line(b"a:b\tc", LineRules()) == (None, b"a:b\tc", ())


def test_the_first_separator_ends_the_key() -> None:
    assert parse_line(b"k:v:w", LineRules(key_separator=b":")) == (b"k", b"v:w", ())


def test_an_empty_key_is_not_null() -> None:
    assert parse_line(b":v", LineRules(key_separator=b":")) == (b"", b"v", ())


def test_the_null_marker_makes_a_tombstone() -> None:
    rules = LineRules(key_separator=b":", null_marker=b"NULL")
    assert parse_line(b"k:NULL", rules) == (b"k", None, ())
    assert parse_line(b"NULL:v", rules) == (None, b"v", ())


def test_headers_come_first_and_follow_the_fixed_ones() -> None:
    rules = LineRules(key_separator=b"|", with_headers=True, fixed_headers=(("env", b"test"),))
    assert parse_line(b"a:1,b:x:y\tk|v", rules) == (b"k", b"v", (("env", b"test"), ("a", b"1"), ("b", b"x:y")))
    assert parse_line(b"\tk|v", rules) == (b"k", b"v", (("env", b"test"),))


@pytest.mark.parametrize(
    ("line", "rules", "complaint"),
    [
        (b"no separator", LineRules(key_separator=b":"), "no key separator ':'"),
        (b"a:1 no tab", LineRules(with_headers=True), "no headers delimiter in the line"),
        (b"broken\tvalue", LineRules(with_headers=True), "'broken' is not of the form name:value"),
    ],
)
def test_a_line_without_its_parts_is_refused(line: bytes, rules: LineRules, complaint: str) -> None:
    with pytest.raises(LineError, match=complaint):
        parse_line(line, rules)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"a\tb\n", b"a\tb\n"),
        (r"\x00\xffz", b"\x00\xffz"),
        (r"\\n", rb"\n"),
        (r"\q", rb"\q"),
        ("ü", "ü".encode()),
    ],
)
def test_escapes(text: str, expected: bytes) -> None:
    assert unescape(text) == expected


def test_every_token_prints_its_part() -> None:
    printer = compile_format(r"%t-%p@%o %T [%k/%K] [%s/%S] %h 100%%\n")
    assert printer(RECORD) == b"orders-2@17 1700000000000 [key/3] [value/5] trace=a1,empty=NULL 100%\n"


def test_nulls_print_as_nothing_with_length_minus_one() -> None:
    record = ConsumedRecord("t", 0, 0, -1, None, None, ())
    assert compile_format("[%k|%K|%s|%S|%h]")(record) == b"[|-1||-1|]"


def test_bytes_that_are_not_text_pass_through() -> None:
    record = ConsumedRecord("t", 0, 0, 0, b"\xff\x00", b"%s\\n", ())
    assert compile_format("%k%s")(record) == b"\xff\x00%s\\n"


@pytest.mark.parametrize("text", ["%q", "%", "%s %"])
def test_an_unknown_token_names_the_known_ones(text: str) -> None:
    with pytest.raises(ValueError, match="is not known; use %t topic"):
        compile_format(text)


def test_flags_make_the_order_of_the_console_consumer() -> None:
    text = format_from_flags(timestamp=True, partition=True, offset=True, headers=True, key=True, separator=r"\t")
    assert text == r"%T\t%p\t%o\t%h\t%k\t%s\n"
    plain = format_from_flags(timestamp=False, partition=False, offset=False, headers=False, key=False, separator=":")
    assert plain == r"%s\n"


def test_a_percent_sign_in_the_separator_is_itself() -> None:
    text = format_from_flags(timestamp=False, partition=False, offset=False, headers=False, key=True, separator="%k")
    assert compile_format(text)(RECORD) == b"key%kvalue\n"
