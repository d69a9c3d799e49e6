"""Replication throttles: whose bytes count, and when it is enough."""

import pytest

from odradek.base.clock import ManualClock
from odradek.base.config.broker_config import BrokerConfig
from odradek.broker.replication.replication_quota import ReplicationQuotas
from odradek.model.topology import TopicPartition

TP, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
ME = 7


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000_000)


@pytest.fixture
def quotas(clock: ManualClock) -> ReplicationQuotas:
    return ReplicationQuotas(ME, BrokerConfig.from_properties({"zookeeper.connect": "zk"}), clock)


def test_nothing_is_held_back_unless_partition_and_rate_are_set(quotas: ReplicationQuotas) -> None:
    quotas.record_leader(TP, 1 << 30)
    assert not quotas.leader_throttled(TP, in_sync=False)
    quotas.set_topic("orders", ["*"], ["*"])
    quotas.record_leader(TP, 1 << 30)
    assert not quotas.leader_throttled(TP, in_sync=False)


def test_a_throttled_replica_waits_until_its_rate_is_low_enough(quotas: ReplicationQuotas, clock: ManualClock) -> None:
    quotas.set_topic("orders", [f"0:{ME}", "1:8"], [])
    quotas.set_rates(leader=1000, follower=None)
    quotas.record_leader(TP, 5000)

    assert quotas.leader_throttled(TP, in_sync=False)
    assert not quotas.leader_throttled(TP, in_sync=True)
    assert not quotas.leader_throttled(OTHER, in_sync=False)  # another broker's replica
    assert not quotas.follower_throttled(TP, in_sync=False)
    clock.advance(4999)
    assert quotas.leader_throttled(TP, in_sync=False)
    clock.advance(1)
    assert not quotas.leader_throttled(TP, in_sync=False)


def test_what_is_not_throttled_does_not_count(quotas: ReplicationQuotas) -> None:
    quotas.set_topic("orders", [], [f"0:{ME}"])
    quotas.set_rates(leader=None, follower=1000)
    quotas.record_follower(OTHER, 1 << 30)
    assert not quotas.follower_throttled(TP, in_sync=False)
    quotas.record_follower(TP, 1001)
    assert quotas.follower_throttled(TP, in_sync=False)


def test_old_windows_are_forgotten(quotas: ReplicationQuotas, clock: ManualClock) -> None:
    quotas.set_topic("orders", [], ["*"])
    quotas.set_rates(leader=None, follower=1000)
    quotas.record_follower(TP, 100_000)
    clock.advance(10_999)
    assert quotas.follower_throttled(TP, in_sync=False)
    clock.advance(1)
    assert not quotas.follower_throttled(TP, in_sync=False)


def test_a_throttle_that_was_removed_holds_nothing_back(quotas: ReplicationQuotas) -> None:
    quotas.set_topic("orders", ["*"], [])
    quotas.set_rates(leader=1, follower=1)
    quotas.record_leader(TP, 1000)
    assert quotas.leader_throttled(TP, in_sync=False)
    quotas.set_topic("orders", [], [])
    assert not quotas.leader_throttled(TP, in_sync=False)
