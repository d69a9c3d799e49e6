"""Defaults of local clusters, by the number of brokers."""

import pytest

from odradek.base.config.broker_config import BrokerConfig
from odradek.local.local_settings import local_defaults


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
