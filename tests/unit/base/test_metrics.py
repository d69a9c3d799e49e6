from hypothesis import given
from hypothesis import strategies as st

from odradek.base.metrics import Registry, Timing, timing_samples


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.99]))
def test_a_quantile_is_right_within_the_width_of_a_bucket(durations_ns: list[int], q: float) -> None:
    timing = Timing()
    for ns in durations_ns:
        timing.record(ns)
    ordered = sorted(ns // 1000 for ns in durations_ns)
    index = next(i for i in range(len(ordered)) if i + 1 >= q * len(ordered))
    exact_us = ordered[index]
    assert exact_us <= timing.quantile_ms(q) * 1000 + 1e-6 <= exact_us * 1.13 + 1
    assert timing.count == len(durations_ns)
    assert timing.total_ns == sum(durations_ns)


def test_a_timing_is_shown_as_the_jmx_exporter_shows_a_histogram() -> None:
    timing = Timing()
    timing.record(2_000_000)
    shown = {(s.name, s.labels.get("quantile")): s.value for s in timing_samples("t", timing, {"request": "Fetch"})}
    assert shown["t_count", None] == 1
    assert shown["t_sum", None] == 2.0
    assert 2.0 <= shown["t", "0.99"] < 2.26


def test_sources_are_asked_at_each_scrape() -> None:
    registry, values = Registry(), [1.0]
    registry.gauge("g", lambda: values[-1])
    assert [s.value for s in registry.collect()] == [1.0]
    values.append(7.0)
    assert [s.value for s in registry.collect()] == [7.0]
