"""Alerts: what raises one, how long it lasts, and what a reading that looked at less leaves alone."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

pytest.importorskip("markupsafe", reason="the console needs odradek[console]")

from odradek.apps.console.alert_log import AlertLog
from odradek.apps.console.readings.cluster import BrokerState, ClusterState
from odradek.apps.console.readings.coordination import CoordinationState
from odradek.apps.console.readings.storage import StorageState
from odradek.apps.console.views.alerts import alerts_html, all_alerts
from odradek.base.errors import ErrorCode
from odradek.client.cluster_client import PartitionState, TopicState
from odradek.client.log_dir_admin import LogDir

NOW_MS = 1_790_000_000_000
TWO_IN_SYNC = {"orders": {"min.insync.replicas": "2"}}


def _cluster(isr: tuple[int, ...], *, brokers: tuple[int, ...] = (0, 1, 2), controller: int = 0) -> ClusterState:
    partition = PartitionState(0, isr[0] if isr else -1, 1, (0, 1, 2), isr, ())
    return ClusterState(
        at_ms=NOW_MS,
        cluster_id="c",
        controller=controller,
        brokers=tuple(BrokerState(number, "host", 9092 + number, None) for number in brokers),
        topics={"orders": TopicState("orders", UUID(int=1), False, (partition,))},
        known_brokers=frozenset({0, 1, 2}),
    )


def _texts(
    cluster: ClusterState | None,
    storage: StorageState | None = None,
    coordination: CoordinationState | None = None,
    ends: dict[int, datetime] | None = None,
) -> list[tuple[str, str]]:
    alerts, _ = all_alerts(cluster, TWO_IN_SYNC, storage, coordination, ends, NOW_MS)
    return [(alert.level, alert.text) for alert in alerts]


HEALTHY = _cluster((0, 1, 2))


def _storage(used: int, error: ErrorCode = ErrorCode.NONE) -> StorageState:
    return StorageState((LogDir(1, "/data", error, (), 100, 100 - used),), {}, {})


def test_a_healthy_cluster_has_none() -> None:
    now = datetime.fromtimestamp(NOW_MS / 1000, UTC)
    answers = CoordinationState("zk:2181", 0, 1)
    assert _texts(HEALTHY, _storage(50), answers, {0: now + timedelta(days=90)}) == []


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        (None, [("bad", "No broker answers.")]),
        (_cluster((0, 1, 2), controller=-1), [("bad", "There is no controller.")]),
        (
            _cluster((0, 1), brokers=(0, 1)),
            [("bad", "Broker 2 is down."), ("warn", "1 partition under-replicated.")],
        ),
        (
            _cluster((0,)),
            [
                ("bad", "1 partition under min.insync.replicas: acks=all is refused."),
                ("warn", "1 partition under-replicated."),
            ],
        ),
        (_cluster(()), [("bad", "1 partition without a leader."), ("warn", "1 partition under-replicated.")]),
    ],
)
def test_brokers_and_partitions(cluster: ClusterState | None, said: list[tuple[str, str]]) -> None:
    assert _texts(cluster) == said


def test_disks_certificates_and_zookeeper() -> None:
    assert _texts(HEALTHY, _storage(86)) == [("warn", "The volume of /data of broker 1 is 86% full.")]
    assert _texts(HEALTHY, _storage(96)) == [("bad", "The volume of /data of broker 1 is 96% full.")]
    failed = _storage(96, ErrorCode.KAFKA_STORAGE_ERROR)
    assert _texts(HEALTHY, failed) == [("bad", "Log directory /data of broker 1 failed: KAFKA_STORAGE_ERROR.")]
    now = datetime.fromtimestamp(NOW_MS / 1000, UTC)
    ends = {0: now + timedelta(days=20), 1: now - timedelta(days=1)}
    assert [(level, text[:29]) for level, text in _texts(HEALTHY, ends=ends)] == [
        ("warn", "The certificate of broker 0 e"),
        ("bad", "The certificate of broker 1 e"),
    ]
    silent = CoordinationState("zk:2181", 0, 1, answers=False)
    assert _texts(HEALTHY, coordination=silent) == [("bad", "ZooKeeper at zk:2181 does not answer.")]


def test_an_alert_has_a_beginning_and_an_end() -> None:
    log = AlertLog()
    log.note(1_000, *all_alerts(_cluster((0, 1), brokers=(0, 1)), TWO_IN_SYNC, None, None, None, 1_000))
    log.note(2_000, *all_alerts(_cluster((0,), brokers=(0,)), TWO_IN_SYNC, None, None, None, 2_000))
    began = {noted.alert.name: noted.since_ms for noted in log.shown}
    assert began == {"broker 2": 1_000, "under-replicated": 1_000, "broker 1": 2_000, "under-min-isr": 2_000}
    assert [noted.alert.level for noted in log.shown] == ["bad", "bad", "bad", "warn"]
    log.note(9_000, *all_alerts(HEALTHY, TWO_IN_SYNC, None, None, None, 9_000))
    assert {noted.until_ms for noted in log.shown} == {9_000}
    html = alerts_html(log.shown, 10_000)
    assert html.count("ended") == 4
    assert "active" not in html


def test_a_source_that_was_not_read_keeps_its_alerts() -> None:
    log = AlertLog()
    silent = CoordinationState("zk:2181", 0, 1, answers=False)
    log.note(1_000, *all_alerts(HEALTHY, {}, _storage(99), silent, None, 1_000))
    log.note(2_000, *all_alerts(HEALTHY, {}, None, None, None, 2_000))
    assert [noted.until_ms for noted in log.shown] == [None, None]
    log.note(3_000, *all_alerts(None, None, None, None, None, 3_000))  # nothing can be said of the rest
    assert [noted.until_ms for noted in log.shown] == [None, None, None]


def test_what_ended_is_bounded() -> None:
    log = AlertLog()
    for turn in range(50):
        log.note(turn, *all_alerts(HEALTHY if turn % 2 else None, {}, None, None, None, turn))
    assert len(log.shown) == 20
    assert alerts_html((), 0) == ""
