"""The settings of brokers that are reached through a relay, and the way back."""

from pathlib import Path

from odradek.base.config.broker_config import BrokerConfig
from odradek.local.links.cuts import CutFrom, is_cut, read_cuts, write_cuts
from odradek.local.links.plan import Link, Plan, is_linked, read_plan, unlinked

PLAN = Plan(
    "zk-1:2181,zk-2:2181/shop",
    (Link(15_001, "zk-1:2181"), Link(15_002, "zk-2:2181")),
    {0: Link(15_003, "127.0.0.1:15004"), 1: Link(15_005, "127.0.0.1:15006")},
)
PLAIN = {"broker.id": "1", "listeners": "PLAINTEXT://127.0.0.1:9093", "zookeeper.connect": PLAN.zookeeper}


def test_a_linked_broker_reaches_and_is_reached_through_the_relay() -> None:
    linked = PLAN.linked(1, PLAIN)
    assert is_linked(linked)
    assert linked["zookeeper.connect"] == "127.0.0.1:15001,127.0.0.1:15002/shop"
    assert linked["listeners"] == "PLAINTEXT://127.0.0.1:9093,LINK://127.0.0.1:15006"
    assert linked["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9093,LINK://127.0.0.1:15005"


def test_and_back() -> None:
    assert unlinked(PLAN.linked(1, PLAIN), PLAN.zookeeper) == PLAIN
    own = {**PLAIN, "advertised.listeners": "PLAINTEXT://kafka:9093", "listener.security.protocol.map": "PLAINTEXT:SSL"}
    assert unlinked(PLAN.linked(1, own), PLAN.zookeeper) == own
    assert unlinked(PLAIN, "elsewhere:2181") == PLAIN


def test_a_plan_is_found_again(tmp_path: Path) -> None:
    PLAN.save(tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == PLAN


def test_what_a_cut_cuts() -> None:
    cuts = {1: frozenset({CutFrom.ZOOKEEPER}), 2: frozenset({CutFrom.BROKERS})}
    assert is_cut(cuts, 1, None)
    assert not is_cut(cuts, 1, 0)
    assert not is_cut(cuts, 2, None)
    assert is_cut(cuts, 2, 0)
    assert is_cut(cuts, 0, 2), "who is cut off is not reached, either"
    assert not is_cut(cuts, 2, 2), "but by itself"
    assert not is_cut(cuts, None, 2), "and by those who are no brokers"


def test_cuts_are_kept_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "cuts.json"
    assert read_cuts(file) == {}
    write_cuts(file, {1: frozenset(CutFrom), 2: frozenset()})
    assert read_cuts(file) == {1: frozenset(CutFrom)}


def test_brokers_take_these_settings() -> None:
    config = BrokerConfig.from_properties(PLAN.linked(1, PLAIN))
    assert config.inter_broker_listener_name == "LINK"
    assert [listener.port for listener in config.advertised_listeners] == [9093, 15_005]
