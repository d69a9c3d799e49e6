"""Times as people type them."""

import pytest

from odradek.client.moments import parse_moment

NOW_MS = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1500", 1500),
        ("1970-01-01T00:00:01.500", 1500),
        ("1970-01-01 00:00:02", 2000),
        ("1970-01-02", 86_400_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("15m ago", NOW_MS - 900_000),
        ("2h", NOW_MS - 7_200_000),
        ("30 s ago", NOW_MS - 30_000),
        ("1 minute ago", NOW_MS - 60_000),
        ("2 hours ago", NOW_MS - 7_200_000),
        ("5 min", NOW_MS - 300_000),
        ("999999d ago", 0),
        ("1969-12-31T23:59:59.999", 0),  # -1 and -2 mean latest and earliest to a broker
    ],
)
def test_a_time(text: str, milliseconds: int) -> None:
    assert parse_moment(text, NOW_MS) == milliseconds


@pytest.mark.parametrize("text", ["", "yesterday", "9" * 30, "15 parsecs ago", "-5", "2026-13-01"])
def test_what_is_no_time_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time: give 15m ago"):
        parse_moment(text, NOW_MS)
