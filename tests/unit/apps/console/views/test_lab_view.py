"""Actions on a broker, and the text about one that is cut off."""

import pytest

pytest.importorskip("nicegui", reason="the console needs odradek[console]")

from odradek.apps.console.readings.coordination import CoordinationState
from odradek.apps.console.readings.traffic import TrafficState
from odradek.apps.console.views.lab import LabBroker, brokers_html, busiest_topic, experiment_html
from odradek.local.links.cuts import CutFrom
from odradek.model.topology import TopicPartition


@pytest.mark.parametrize(
    ("broker", "acts"),
    [
        (LabBroker(1, "running"), ("kill", "pause", "stop")),
        (LabBroker(1, "running", can_be_cut=True), ("kill", "pause", "stop", "cut")),
        (LabBroker(1, "running", True, frozenset({CutFrom.ZOOKEEPER})), ("kill", "pause", "stop", "heal")),
        (LabBroker(1, "paused", can_be_cut=True), ("resume", "kill", "cut")),
        (LabBroker(1, "stopped", can_be_cut=True), ("start",)),
        (LabBroker(1, "stopped", True, frozenset(CutFrom)), ("start", "heal")),
    ],
)
def test_what_is_possible(broker: LabBroker, acts: tuple[str, ...]) -> None:
    assert broker.acts == acts


def test_the_busiest_topic_is_watched() -> None:
    names = ["audit", "orders", "payments"]
    ends = {TopicPartition("orders", 0): 40, TopicPartition("orders", 1): 40, TopicPartition("payments", 0): 70}
    assert busiest_topic([], None) == ""
    assert busiest_topic(names, None) == "audit"
    assert busiest_topic(names, TrafficState(0, ends)) == "orders"
    assert busiest_topic(names, TrafficState(0, ends, topic_rates={"payments": (0.0, 3.0)})) == "payments"


def test_zookeeper_says_who_has_a_session() -> None:
    known = CoordinationState("zk:2181", 0, 4, {0: 1})
    cut = LabBroker(1, "running", True, frozenset(CutFrom))
    shown = brokers_html([LabBroker(0, "running"), cut], None, known, read_only=False)
    assert "not in the cluster: it has no session" in shown
    assert "isolated from ZooKeeper and the other brokers" in shown


def test_a_read_only_console_has_no_buttons() -> None:
    assert "<button" not in brokers_html([LabBroker(0, "running", can_be_cut=True)], None, None, read_only=True)


def test_the_drawing_is_shown_as_far_as_it_has_come() -> None:
    assert "iframe" not in experiment_html("[ 3 s] starting", is_running=True, drawn_ms=None)
    assert "rebalance.html?drawn=17" in experiment_html("[ 90 s] two", is_running=True, drawn_ms=17)
