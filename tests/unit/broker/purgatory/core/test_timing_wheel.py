"""The wheel against the simplest model of it: a list that is sorted by deadline."""

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.purgatory.core.timing_wheel import TimerEntry, TimingWheel

STEPS = st.one_of(
    st.tuples(st.just("add"), st.integers(-5, 50)),
    st.tuples(st.just("add"), st.integers(0, 10_000_000)),
    st.tuples(st.just("remove"), st.integers(0, 1000)),
    st.tuples(st.just("advance"), st.integers(0, 30)),
    st.tuples(st.just("advance"), st.integers(0, 3_000_000)),
    st.tuples(st.just("look"), st.just(0)),
)


@settings(max_examples=400, deadline=None)
@given(start_ms=st.integers(0, 10**12), steps=st.lists(STEPS, max_size=60))
def test_it_expires_what_a_sorted_list_expires(start_ms, steps):
    now_ms = start_ms
    wheel, model = TimingWheel(now_ms), []
    for step, amount in steps:
        if step == "add":
            entry = TimerEntry(now_ms + amount)
            assert wheel.add(entry) == (amount > 0)
            if amount > 0:
                model.append(entry)
        elif step == "remove" and model:
            entry = model.pop(amount % len(model))
            assert wheel.remove(entry)
            assert not wheel.remove(entry)
        elif step == "advance":
            now_ms += amount
            expired = wheel.advance_clock(now_ms)
            assert [e.deadline_ms for e in expired] == sorted(e.deadline_ms for e in model if e.deadline_ms <= now_ms)
            assert not any(wheel.remove(entry) for entry in expired)
            model = [entry for entry in model if entry.deadline_ms > now_ms]
        elif step == "look":
            due_ms = wheel.next_due_ms()
            assert (due_ms is None) == (not model)
            assert due_ms is None or due_ms <= min(entry.deadline_ms for entry in model)
        assert len(wheel) == len(model)


@settings(max_examples=100, deadline=None)
@given(delays_ms=st.lists(st.integers(1, 1_000_000), min_size=1, max_size=30))
def test_going_from_one_due_time_to_the_next_misses_no_deadline(delays_ms):
    wheel = TimingWheel(0)
    for delay_ms in delays_ms:
        wheel.add(TimerEntry(delay_ms))
    expired = []
    looks = 0
    while (due_ms := wheel.next_due_ms()) is not None:
        expired += [(due_ms, entry.deadline_ms) for entry in wheel.advance_clock(due_ms)]
        looks += 1
    assert expired == [(delay_ms, delay_ms) for delay_ms in sorted(delays_ms)]
    assert looks <= 6 * len(delays_ms)


def test_the_worked_example_a_timer_moves_down_when_its_coarse_bucket_comes_due():
    wheel = TimingWheel(0)
    entry = TimerEntry(25)
    wheel.add(entry)
    assert wheel.next_due_ms() == 20
    assert wheel.advance_clock(20) == []
    assert wheel.next_due_ms() == 25
    assert wheel.advance_clock(24) == []
    assert wheel.advance_clock(25) == [entry]
    assert wheel.next_due_ms() is None
