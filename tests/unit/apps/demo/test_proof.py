"""The judge of the demo finds what is lost, what is there twice and what doesn't belong."""

from collections import Counter
from datetime import UTC, datetime

from odradek.apps.demo.proof import compare, compare_windows, expected_windows
from odradek.apps.pipeline.sample_orders import OrderMaker, Sent


def test_the_judge_counts() -> None:
    check = compare("x", Counter("aabc"), Counter("abbd"))
    assert (check.expected, check.found, check.lost, check.twice, check.wrong) == (4, 4, 2, 1, 1)
    assert not check.ok
    assert compare("x", Counter("ab"), Counter("ba")).ok


def test_the_shop_sells_all_kinds_and_the_same_again() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    sent = Sent(OrderMaker(1).make(3000, now))
    assert [r.value for r in sent.records] == [r.value for r in OrderMaker(1).make(3000, now)]
    assert sent.total == sent.good + sent.twice + sent.bad
    assert min(sent.good, sent.twice, sent.bad) > 20
    ids = [r.order["order_id"] for r in sent.records if r.order is not None and not r.is_copy]
    assert len(set(ids)) == sent.good


def test_a_window_that_is_off_by_one_order_is_wrong() -> None:
    sent = Sent(OrderMaker(1).make(200, datetime(2026, 1, 1, tzinfo=UTC)))
    windows = dict(expected_windows(sent))
    assert compare_windows(sent, windows).ok
    key, (orders, revenue) = next(iter(windows.items()))
    assert compare_windows(sent, {**windows, key: (orders + 1, revenue)}).wrong == 1
    del windows[key]
    assert compare_windows(sent, windows).lost == 1
