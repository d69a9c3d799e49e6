"""Defaults of local clusters, by the number of brokers."""

import pytest

from odradek.base.config.broker_config import BrokerConfig
from odradek.local.local_settings import local_defaults, outgrown, shared_settings


@pytest.mark.parametrize(
    ("brokers", "replicas", "min_isr"), [(1, None, None), (2, "2", "1"), (3, "3", "2"), (5, "3", "2")]
)
def test_topics_have_replicas_if_there_are_brokers_for_them(
    brokers: int, replicas: str | None, min_isr: str | None
) -> None:
    defaults = local_defaults(brokers, is_new=True)
    assert defaults.get("default.replication.factor") == replicas
    assert defaults.get("min.insync.replicas") == min_isr
    assert defaults["offsets.topic.replication.factor"] == (replicas or "1")
    assert defaults["group.initial.rebalance.delay.ms"] == "0"
    BrokerConfig.from_properties({"broker.id": "0", "zookeeper.connect": "127.0.0.1:2181", **defaults})


def test_an_older_cluster_keeps_its_internal_topics() -> None:
    added = local_defaults(1, is_new=True).keys() - local_defaults(1, is_new=False).keys()
    assert added == {"offsets.topic.num.partitions", "transaction.state.log.num.partitions"}


GROWN = {"default.replication.factor", "min.insync.replicas"}
INTERNAL = {"offsets.topic.replication.factor", "transaction.state.log.replication.factor"}
LOG_ISR = {"transaction.state.log.min.isr"}


def test_defaults_of_fewer_brokers_are_outgrown() -> None:
    one, two = (local_defaults(count, is_new=True) for count in (1, 2))
    assert outgrown([one], 3) == [INTERNAL | LOG_ISR]
    assert outgrown([two, two], 3) == [GROWN | INTERNAL | LOG_ISR] * 2
    assert outgrown([one, two], 2) == [INTERNAL, frozenset()], "two was added while one was running"
    assert outgrown([two, two], 2) == [frozenset()] * 2
    assert outgrown([], 3) == []


def test_what_somebody_gave_to_every_broker_stays() -> None:
    three = {**local_defaults(3, is_new=True), "min.insync.replicas": "1"}
    assert outgrown([three] * 3, 3) == [frozenset()] * 3
    assert outgrown([three] * 3, 4) == [frozenset()] * 3


def test_a_new_broker_takes_over_what_is_not_each_brokers_own() -> None:
    first = {"broker.id": "0", "log.dirs": "/a", "message.max.bytes": "5", "zookeeper.connect": "zk", "listeners": "l"}
    assert shared_settings(first) == {"message.max.bytes": "5"}
