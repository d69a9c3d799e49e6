"""Hostile names of clients, groups, keys, headers and settings: in every view they stay text."""

from collections.abc import Callable
from html.parser import HTMLParser
from uuid import UUID

import pytest

pytest.importorskip("markupsafe", reason="the console needs odradek[console]")

from odradek.apps.console.changes import Change
from odradek.apps.console.feeds import Reading
from odradek.apps.console.login_page import login_page
from odradek.apps.console.rate_history import RateHistory
from odradek.apps.console.readings.cluster import BrokerState, ClusterState
from odradek.apps.console.readings.coordination import CoordinationState
from odradek.apps.console.readings.group_changes import Seen
from odradek.apps.console.readings.groups import GroupDetail, GroupsState
from odradek.apps.console.readings.history import Moment
from odradek.apps.console.readings.pipelines import PipelinesState
from odradek.apps.console.readings.records import Found
from odradek.apps.console.readings.topic import ReplicaOffsets, TopicDetail
from odradek.apps.console.views import cluster, groups, history, lab, pipelines, records, settings, topic, topics
from odradek.apps.console.views.banner import banner, gap
from odradek.apps.records.decoders import AUTOMATIC
from odradek.apps.records.filters import SeenRecord
from odradek.base.config.definition import ConfigSource
from odradek.broker.recorder.core.entry import Entry
from odradek.client.cluster_client import PartitionState, TopicState
from odradek.client.config_admin import Setting, Synonym
from odradek.client.group_admin import Group, GroupListing, Member
from odradek.client.group_lag import Lag
from odradek.client.offset_reset import Move
from odradek.model.topology import TopicPartition
from odradek.protocol.records import Record

EVIL = "'\"><img src=x onerror=alert(1)><script>alert(2)</script><svg onload=alert(3)>"
TP = TopicPartition(EVIL, 0)
PARTITION = PartitionState(0, 0, 1, (0, 1), (0,), (1,))
TOPIC = TopicState(EVIL, UUID(int=1), False, (PARTITION,))
MEMBER = Member(EVIL, EVIL, EVIL, EVIL, (TP,))
GROUP = Group(EVIL, EVIL, EVIL, 0, (EVIL, 1), (MEMBER,))
DETAIL = GroupDetail(GROUP, (Lag(TP, 1, 2, MEMBER),), {TP: 5}, (Seen(0, EVIL),))
STATE = ClusterState(0, EVIL, 0, (BrokerState(0, EVIL, 1, EVIL),), {EVIL: TOPIC}, frozenset({0, 1}))
SETTING = Setting(
    EVIL, EVIL, ConfigSource.DYNAMIC_TOPIC_CONFIG, False, False, (Synonym(ConfigSource.DEFAULT_CONFIG, EVIL, EVIL),)
)
ENTRY = Entry(0, 0, 1, "group", EVIL, text=f"{EVIL}; {EVIL}")
MOMENT = Moment(0, 0, EVIL, "", (EVIL,) * 9, (EVIL,), frozenset({str(TP)}))
RECORD = Record(0, 0, EVIL.encode(), EVIL.encode(), ((EVIL, EVIL.encode()),))
TOPIC_DETAIL = TopicDetail(TOPIC, {0: 1}, {(0, b): ReplicaOffsets(0, 1) for b in (0, 1)})
QUERY = {"name": EVIL, "target": EVIL, "group": EVIL, "error": EVIL}
DOCUMENT = {"state": EVIL, "project": EVIL, "pipeline": EVIL, "spark": EVIL, "reason": EVIL, "dead_letters": EVIL}
SEARCH = topics.Search(EVIL)

VIEWS: dict[str, Callable[[], str]] = {
    "groups": lambda: groups.groups_table(
        GroupsState((GroupListing(EVIL, EVIL, EVIL, EVIL),), {EVIL: 1}, {}), None, RateHistory(), "", 1
    ),
    "a group": lambda: groups.group_figures(DETAIL) + groups.lags_table(DETAIL, 1) + groups.seen_table(DETAIL.seen),
    "members": lambda: groups.members_table(GROUP, 1),
    "rebalances": lambda: groups.rebalances_table([ENTRY]),
    "a reset": lambda: groups.moves_table([Move(TP, 0, 1, 2, False)]),
    "settings": lambda: settings.settings_html(
        [SETTING], ConfigSource.DYNAMIC_TOPIC_CONFIG, {EVIL: EVIL}, read_only=False, empty=""
    ),
    "a topic": lambda: topic.strips_html(TOPIC_DETAIL, None, 1) + topic.consumers_html({EVIL: (EVIL, 1)}),
    "topics": lambda: topics.topics_table(topics.topic_rows(STATE, {EVIL: {}}, None, None, SEARCH), SEARCH),
    "records": lambda: records.records_html(Found((SeenRecord(0, RECORD, AUTOMATIC),), 1, True), EVIL),
    "brokers": lambda: cluster.broker_table(cluster.broker_rows(STATE, None, None, None), metrics=True),
    "changes": lambda: cluster.changes_table([Change(0, EVIL, EVIL, EVIL)]),
    "history": lambda: history.moments_html([MOMENT], 0) + history.heading(MOMENT, 0, 1),
    "pipelines": lambda: pipelines.pipelines_html(PipelinesState(0, ({**DOCUMENT, "queries": [QUERY]},))),
    "the experiment": lambda: lab.experiment_html(EVIL, is_running=True, drawn_ms=1),
    "what is missing": lambda: banner(Reading(STATE, 0, EVIL), CoordinationState(EVIL, None, None, answers=False), 1),
    "a part that is missing": lambda: gap(EVIL, Reading(None, 0, EVIL)),
    "the login": lambda: login_page(EVIL, EVIL),
}


class _Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("view", VIEWS)
def test_it_stays_text(view: str) -> None:
    page = _Elements(str(VIEWS[view]()))
    assert EVIL in page.text or any(EVIL in (value or "") for _, told in page.found for value in told.values())
    for tag, told in page.found:
        assert tag not in ("script", "img")
        assert not [name for name in told if name.startswith("on")]
        assert not (told.get("href") or "").lower().startswith("javascript:")


def test_a_secret_is_masked_whatever_the_broker_tells() -> None:
    secret = Setting("ssl.key.password", "hunter2", ConfigSource.DYNAMIC_TOPIC_CONFIG, False, True, ())
    shown = settings.settings_html([secret], ConfigSource.DYNAMIC_TOPIC_CONFIG, {}, read_only=False, empty="")
    assert "hunter2" not in shown
    assert "••••••" in shown
