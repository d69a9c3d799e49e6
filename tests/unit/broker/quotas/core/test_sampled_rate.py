"""Rates over windows of time; a model that remembers everything says what they should be."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.quotas.core.sampled_rate import SampledRate


def rate() -> SampledRate:
    return SampledRate(window_ms=1000, windows=11)


def test_what_comes_at_once_counts_as_spread_over_ten_windows() -> None:
    one = rate()
    one.record(5000, 0)
    assert one.per_second(0) == 500
    assert one.wait_ms(500, 0) == 0
    one.record(5000, 0)
    assert one.per_second(0) == 1000
    assert one.wait_ms(500, 0) == 10_000


def test_after_the_wait_the_rate_is_down_to_the_limit() -> None:
    one = rate()
    for now_ms in range(0, 10_000, 250):
        one.record(300, now_ms)
    one.record(2000, 10_000)
    wait_ms = one.wait_ms(1300, 10_000)
    assert wait_ms == round(100 / 1300 * 10_000)
    assert one.wait_ms(1300, 10_000 + wait_ms - 100) > 0
    assert one.wait_ms(1300, 10_000 + wait_ms + 1) == 0


def test_a_steady_client_at_its_limit_never_waits() -> None:
    one = rate()
    for now_ms in range(0, 60_000, 100):
        one.record(100, now_ms)
        assert one.wait_ms(1010, now_ms) == 0
    assert 990 < one.per_second(60_000) < 1010


def test_old_samples_are_forgotten() -> None:
    one = rate()
    one.record(1000, 0)
    assert not one.is_idle(10_999)
    assert one.is_idle(11_000)
    assert one.per_second(11_000) == 0


def test_a_limit_of_nothing_is_waited_for_until_all_is_forgotten() -> None:
    one = rate()
    one.record(1, 0)
    assert one.wait_ms(0, 0) == 11_000
    assert one.wait_ms(0, 11_000) == 0


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 10_000)), max_size=60), st.integers(1, 20_000))
def test_whoever_waits_as_told_stays_near_the_limit(steps: list[tuple[int, int]], limit: int) -> None:
    """Twice the limit, and one burst: what is larger than all windows hold is forgotten before it is paid for, as it is
    in Kafka."""
    one = rate()
    now_ms = used = 0
    for pause_ms, amount in steps:
        now_ms += pause_ms
        one.record(amount, now_ms)
        used += amount
        now_ms += one.wait_ms(limit, now_ms)
    assert used <= 2 * limit * now_ms / 1000 + limit * 11 + 10_000
