from odradek.broker.api.request_metrics import REMEMBERED, Moments, RequestMetrics
from odradek.protocol.api_keys import ApiKey

MS = 1_000_000


def values(metrics: RequestMetrics) -> dict[tuple[str, str], float]:
    return {(s.name, s.labels.get("quantile", s.labels.get("version", ""))): s.value for s in metrics.samples()}


def test_a_request_is_shown_by_where_its_time_went() -> None:
    metrics = RequestMetrics()
    metrics.of(ApiKey.FETCH).record(12, Moments(0, 1 * MS, 3 * MS, 13 * MS, 17 * MS))
    shown = values(metrics)
    prefix = "kafka_network_requestmetrics_"
    assert shown[prefix + "requests_total", "12"] == 1
    for name, ms in (("requestqueue", 1), ("local", 2), ("remote", 10), ("responsesend", 4), ("total", 17)):
        assert shown[f"{prefix}{name}timems", "0.99"] == ms
        assert shown[f"{prefix}{name}timems_count", ""] == 1


def test_what_is_long_ago_is_forgotten() -> None:
    metrics = RequestMetrics()
    timings = metrics.of(ApiKey.PRODUCE)
    timings.record(9, Moments(0, 0, 0, 0, 5000 * MS))
    for _ in range(REMEMBERED):
        timings.record(9, Moments(0, 0, 0, 0, 1 * MS))
    shown = values(metrics)
    assert shown["kafka_network_requestmetrics_totaltimems", "0.999"] == 1
    assert shown["kafka_network_requestmetrics_totaltimems_count", ""] == REMEMBERED + 1
