"""Rates over a day: a point a minute, bounded in time and in names."""

from odradek.apps.console.rate_history import NAMES_MAX, POINTS_MAX, RateHistory

MINUTE = 60_000


def test_values_of_a_minute_become_their_mean() -> None:
    history = RateHistory()
    for at, value in ((0, 1.0), (10_000, 2.0), (59_999, 6.0), (MINUTE, 5.0)):
        history.note(at, {"orders": value})
    assert history.over_a_day("orders", MINUTE) == [(0, 3.0), (MINUTE, 5.0)]
    assert history.over_a_day("letters", MINUTE) == []
    assert history.latest("orders", 1) == [5.0]
    assert history.latest("letters", 1) == []


def test_a_day_is_kept_and_no_more_names_than_allowed() -> None:
    history = RateHistory()
    for minute in range(POINTS_MAX + 10):
        history.note(minute * MINUTE, {"orders": float(minute)})
    kept = history.over_a_day("orders", (POINTS_MAX + 9) * MINUTE)
    assert (len(kept), kept[0][1]) == (POINTS_MAX, 10.0)
    assert history.over_a_day("orders", (POINTS_MAX + 9 + POINTS_MAX) * MINUTE) == []
    history.note(0, {f"topic-{number}": 1.0 for number in range(NAMES_MAX)})
    assert history.over_a_day("orders", (POINTS_MAX + 9) * MINUTE) == []
