from hypothesis import given
from hypothesis import strategies as st

from odradek.base.metrics import QUANTILES, Registry, Sample, histogram_samples


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=200))
def test_quantiles_are_durations_that_occurred_and_rise(durations_ns: list[int]) -> None:
    shown = list(histogram_samples("t", durations_ns, 7, {"request": "Fetch"}))
    assert (shown[0].name, shown[0].value) == ("t_count", 7)
    values = [sample.value for sample in shown[1:]]
    assert [sample.labels["quantile"] for sample in shown[1:]] == [str(q) for q in QUANTILES]
    assert values == sorted(values)
    below = sum(ns / 1e6 <= values[0] for ns in durations_ns)
    assert 2 * below >= len(durations_ns), "half of them are not above the median"


def test_nothing_measured_is_zero() -> None:
    assert [sample.value for sample in histogram_samples("t", [], 0, {})] == [0] * (1 + len(QUANTILES))


def test_sources_are_asked_at_each_scrape() -> None:
    registry, values = Registry(), [1.0]
    registry.gauge("g", lambda: values[-1])
    assert [sample.value for sample in registry.collect()] == [1.0]
    values.append(7.0)
    assert [sample.value for sample in registry.collect()] == [7.0]


def test_who_wants_a_name_has_only_the_sources_asked_that_know_it() -> None:
    registry = Registry()
    registry.gauge("wanted", lambda: 1.0)
    registry.gauge("costly", lambda: 1 / 0)
    registry.add(lambda: [Sample("wanted", "gauge", 2.0, {}), Sample("other", "gauge", 3.0, {})])
    assert [sample.value for sample in registry.collect(["wanted"])] == [1.0, 2.0]
