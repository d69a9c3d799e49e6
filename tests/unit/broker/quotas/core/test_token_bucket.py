from odradek.broker.quotas.core.token_bucket import TokenBucket


def test_it_begins_full_and_may_be_overdrawn_once() -> None:
    bucket = TokenBucket(rate=2, holds_s=11, now_ms=0)
    assert bucket.tokens(0) == 22
    bucket.take(30, 0)
    assert bucket.wait_ms(0) == 4000
    assert bucket.wait_ms(3000) == 1000
    assert bucket.wait_ms(4000) == 0


def test_it_holds_no_more_than_it_can() -> None:
    bucket = TokenBucket(rate=2, holds_s=11, now_ms=0)
    bucket.take(10, 0)
    assert not bucket.is_idle(4999)
    assert bucket.is_idle(5000)
    assert bucket.tokens(1_000_000) == 22


def test_without_a_rate_nothing_is_ever_paid_for() -> None:
    bucket = TokenBucket(rate=0, holds_s=11, now_ms=0)
    bucket.take(1, 0)
    assert bucket.wait_ms(1_000_000) == 11_000


def test_what_may_be_refused_is_never_overdrawn() -> None:
    bucket = TokenBucket(1.0, 2, 0)
    assert [bucket.try_take(1, 0) for _ in range(3)] == [True, True, False]
    assert [bucket.try_take(1, 1_000) for _ in range(2)] == [True, False]
    assert bucket.try_take(1, 500) is False  # a clock that went back gives nothing
