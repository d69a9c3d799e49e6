"""The cluster in a sentence and in rows, from snapshots made up here."""

from dataclasses import replace
from uuid import UUID

import pytest

pytest.importorskip("markupsafe", reason="the console needs odradek[console]")

from odradek.apps.console.feeds import Reading
from odradek.apps.console.readings.cluster import BrokerState, ClusterState
from odradek.apps.console.readings.coordination import CoordinationState
from odradek.apps.console.readings.topic import ReplicaOffsets, TopicDetail
from odradek.apps.console.readings.traffic import Point, TrafficState
from odradek.apps.console.views.banner import banner
from odradek.apps.console.views.cluster import broker_rows, summarize
from odradek.apps.console.views.health import PROBLEMS, problems_of
from odradek.apps.console.views.parts import PAGE_ROWS, paged
from odradek.apps.console.views.topic import strips
from odradek.apps.console.views.topics import Search, topic_rows, topics_table
from odradek.client.cluster_client import PartitionState, TopicState


def _partition(number: int, leader: int, isr: tuple[int, ...], replicas: tuple[int, ...] = (0, 1, 2)) -> PartitionState:
    offline = tuple(broker for broker in replicas if broker not in isr)
    return PartitionState(number, leader, 4, replicas, isr, offline)


def _cluster(*partitions: PartitionState, brokers: tuple[int, ...] = (0, 1, 2), controller: int = 0) -> ClusterState:
    return ClusterState(
        at_ms=1_000,
        cluster_id="c",
        controller=controller,
        brokers=tuple(BrokerState(id_, "host", 9092 + id_, None) for id_ in brokers),
        topics={"orders": TopicState("orders", UUID(int=1), False, partitions)},
        known_brokers=frozenset({0, 1, 2}),
    )


WELL = _partition(0, 0, (0, 1, 2))


@pytest.mark.parametrize(
    ("state", "level", "said"),
    [
        (_cluster(WELL), "ok", "Healthy: 3 brokers"),
        (
            _cluster(_partition(0, 0, (0, 1)), brokers=(0, 1)),
            "warn",
            "Broker 2 is down; 1 partition under-replicated; 1 partition can lose no further replica.",
        ),
        (_cluster(_partition(0, 0, (0,))), "bad", "1 partition can't be written with acks=all"),
        (_cluster(_partition(0, -1, ()), _partition(1, -1, ())), "bad", "2 partitions have no leader"),
        (_cluster(WELL, controller=-1), "bad", "There is no controller"),
    ],
)
def test_health_in_one_sentence_the_worst_first(state: ClusterState, level: str, said: str) -> None:
    summary = summarize(state, {"orders": {"min.insync.replicas": "2"}})
    assert summary.level == level
    assert summary.sentence.startswith(said)


@pytest.mark.parametrize(
    ("partition", "problems"),
    [
        (WELL, set()),
        (_partition(0, 1, (0, 1, 2)), {"not-preferred"}),
        (_partition(0, 0, (0, 1)), {"under-replicated", "at-min-isr"}),
        (_partition(0, 0, (0,)), {"under-replicated", "under-min-isr"}),
        (_partition(0, -1, ()), {"under-replicated", "offline"}),
        (_partition(0, 0, (0,), (0,)), set()),
    ],
)
def test_the_problems_that_are_counted_are_those_that_topics_are_filtered_by(
    partition: PartitionState, problems: set[str]
) -> None:
    assert problems_of(partition, 2) == problems
    state, settings = _cluster(partition), {"orders": {"min.insync.replicas": "2"}}
    found = {name for name in PROBLEMS if name and topic_rows(state, settings, None, None, Search(problem=name))}
    assert found == problems


def test_a_search_is_an_address_that_leaves_out_what_says_nothing() -> None:
    assert {key for key, value in Search().address.items() if value} == set()
    assert Search("a b", True, "-rate", 3).address == {
        "q": "a b", "problem": "", "sort": "-rate", "at": 3, "internal": "1"
    }  # fmt: skip


def test_a_topic_of_one_replica_is_not_at_its_minimum() -> None:
    summary = summarize(_cluster(_partition(0, 0, (0,), (0,))), {"orders": {"min.insync.replicas": "1"}})
    assert (summary.at_min_isr, summary.level) == (0, "ok")


def test_brokers_bear_what_they_lead_and_a_dead_one_is_still_shown() -> None:
    state = _cluster(_partition(0, 0, (0, 1)), _partition(1, 0, (0, 1), (2, 0, 1)), brokers=(0, 1))
    point = Point(1_000, {0: 12.5}, {0: 100.0}, {})
    rows = broker_rows(state, None, TrafficState(1_000, {}, (point,)), None)
    assert [(row.id, row.is_live, row.leads, row.preferred, row.out_of_sync) for row in rows] == [
        (0, True, 2, 1, 0),
        (1, True, 0, 0, 0),
        (2, False, 0, 1, 2),
    ]
    assert (rows[0].records, rows[1].records, rows[2].records) == (12.5, 0.0, None)


def test_the_banner_says_what_is_missing_and_how_old_the_picture_is() -> None:
    state = _cluster(WELL)
    assert banner(Reading(state, 1_000, None, 1), CoordinationState("zk:2181", 0, 1), 1_500) == ""
    one_gone = Reading(replace(state, brokers=state.brokers[:2]), 1_000, None, 1)
    assert "1 broker down: 2" in banner(one_gone, None, 1_500)
    no_zookeeper = CoordinationState("zk:2181", None, None, answers=False)
    assert "ZooKeeper at zk:2181 does not answer" in banner(Reading(state, 1_000, None, 1), no_zookeeper, 1_500)
    gone = banner(Reading(state, 1_000, "no broker answers at host:9092", 2), None, 13_000)
    assert "No broker answers" in gone
    assert "12 s old" in gone


def test_a_thousand_topics_are_searched_sorted_and_paged_here() -> None:
    topics = {
        f"topic-{n:04d}": TopicState(f"topic-{n:04d}", UUID(int=n), False, (WELL,) * (n % 7 + 1)) for n in range(1_000)
    }
    state = replace(_cluster(), topics={**topics, "__internal": TopicState("__internal", UUID(int=9), True, (WELL,))})
    assert len(topic_rows(state, None, None, None, Search())) == 1_000
    assert [row.name for row in topic_rows(state, None, None, None, Search("TOPIC 0042"))] == ["topic-0042"]
    assert topic_rows(state, None, None, None, Search(internal=True))[0].name == "__internal"
    most = topic_rows(state, None, None, None, Search(sort="-partitions"))
    assert most[0].partitions == 7
    html = topics_table(most, Search(sort="-partitions", page=2))
    assert html.count('class="name"') == PAGE_ROWS
    assert "1,000 in 20 pages" in html


@pytest.mark.parametrize(
    ("rows", "wanted", "number", "pages"), [(0, 1, 1, 1), (50, 9, 1, 1), (51, 2, 2, 2), (200, -3, 1, 4)]
)
def test_a_page_that_isnt_there_is_the_nearest_one(rows: int, wanted: int, number: int, pages: int) -> None:
    page = paged(rows, wanted)
    assert (page.number, page.pages) == (number, pages)


def test_a_strip_shows_who_leads_who_lags_and_who_is_silent() -> None:
    partition = PartitionState(0, 1, 7, (0, 1, 2), (1, 2), (0,))
    topic = TopicState("orders", UUID(int=1), False, (partition,))
    offsets = {(0, 0): ReplicaOffsets(None, None), (0, 1): ReplicaOffsets(100, 300), (0, 2): ReplicaOffsets(100, 250)}
    (strip,) = strips(TopicDetail(topic, {0: 250}, offsets), None, slice(None))
    assert [(lane.role, lane.is_preferred, lane.behind) for lane in strip.lanes] == [
        ("offline", True, None),
        ("leader", False, 0),
        ("isr", False, 50),
    ]
    assert strip.mark == 0.75
    assert (strip.lanes[1].begin, strip.lanes[1].end) == (0.0, 1.0)
