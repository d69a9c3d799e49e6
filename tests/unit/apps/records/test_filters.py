"""Filters over records: parsed to data, compared, never run."""

import pytest

from odradek.apps.records.decoders import AUTOMATIC
from odradek.apps.records.filters import FilterError, SeenRecord, own_search, parse_filter
from odradek.protocol.records import Record

VALUE = b'{"to": {"city": "Wien"}, "list": [1, 2], "amount": 12.5, "paid": true, "note": null}'
RECORD = Record(7, 1_700_000_000_000, b"Karl", VALUE, (("trace", b"abc"), ("trace", b"xyz")))


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("", True),
        ("wien", True),
        ("trace", True),
        ("praha", False),
        ('"city\\": \\"Wien"', True),
        ('key = "Karl"', True),
        ("key = karl", False),
        ("key == Karl", True),
        ("key has KAR", True),
        ("value.to.city = Wien", True),
        ("value.list.1 = 2", True),
        ("value.list.9 = 2", False),
        ("value.to.__class__ has a", False),
        ("value.amount > 12 and value.amount <= 12.5", True),
        ("value.amount > 12.5 or value.paid = true", True),
        ("value.amount > 12.5 and value.paid = true", False),
        ("value.note = null", True),
        ("not value.paid = false", True),
        ("value.missing != 3", True),
        ("value.missing = 3", False),
        ("not (partition = 3 or offset < 7)", False),
        ("not (partition = 4 or offset < 7)", True),
        ("header.trace = xyz", True),
        ("header.trace ~ '^a.c$'", True),
        ("header.other ~ .", False),
        ("value !~ 'Praha|Brno'", True),
        ('value.to.city in "Praha, Wien"', True),
        ("timestamp >= 2023-11-14T00:00+00:00 and timestamp < 1700000000001", True),
        ("size > 80", True),
        ("value.to has wien", True),
    ],
)
def test_a_filter_is_data(text: str, fits: bool) -> None:
    pytest.importorskip("re2", reason="regular expressions need odradek[console]")
    assert parse_filter(text)(SeenRecord(3, RECORD, AUTOMATIC)) is fits


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("key =", "a value is missing"),
        ("key = a b", "combine with and"),
        ("(key = a", "a \\) is missing"),
        ("and", "not expected"),
        ("nothing = 3", "is not a field"),
        ("value.a < b", "compares numbers"),
        ("offset = soon", "offset is a number"),
        ("timestamp > soon", "is not a time"),
        ('key = "a', "quotation mark"),
        ("key ~ '('", "invalid regular expression"),
        ("key ~ '(a)\\\\1'", "invalid regular expression"),
        ("(" * 500, "nested too deeply"),
        ("x" * 2_000, "at most"),
    ],
)
def test_a_fault_is_a_sentence(text: str, said: str) -> None:
    pytest.importorskip("re2", reason="regular expressions need odradek[console]")
    with pytest.raises(FilterError, match=said):
        parse_filter(text)


def test_no_regular_expression_takes_long() -> None:
    """Python's own engine would need more than the age of the universe for this one."""
    pytest.importorskip("re2", reason="regular expressions need odradek[console]")
    fits = parse_filter("value ~ '^(a+)+$'")
    record = Record(0, 0, None, b"a" * 100_000 + b"!", ())
    assert fits(SeenRecord(0, record, AUTOMATIC)) is False


def test_expressions_of_the_user_need_no_re2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.apps.records.filters.find_spec", lambda name: None)
    assert parse_filter("value ~ '^a+$'", own_search)(SeenRecord(0, Record(0, 0, None, b"aa"), AUTOMATIC))
    with pytest.raises(FilterError, match="invalid regular expression"):
        parse_filter("value ~ '('", own_search)
