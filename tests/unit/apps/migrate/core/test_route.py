"""The route of a migration: successors, steps, and what can't be meant."""

import pytest

from odradek.apps.migrate.core.route import pair_brokers, steps_of
from odradek.apps.reassign.core.plan import PlanError
from odradek.apps.reassign.core.view import BrokerView, ClusterView, PartitionView
from odradek.model.topology import TopicPartition

ORDERS, OFFSETS = TopicPartition("orders", 0), TopicPartition("__consumer_offsets", 0)


def cluster(**replicas: tuple[int, ...]) -> ClusterView:
    topics = {"orders": ORDERS, "offsets": OFFSETS}
    brokers = {broker: BrokerView(broker) for broker in (0, 1, 10, 11)}
    return ClusterView(brokers, {topics[name]: PartitionView(held, held[0], held) for name, held in replicas.items()})


def test_successors_are_in_the_order_of_ids() -> None:
    assert pair_brokers([2, 0, 1], [12, 11, 10], {}) == {0: 10, 1: 11, 2: 12}


def test_a_successor_in_the_same_rack_is_taken_first() -> None:
    racks = {0: "a", 1: "b", 10: "b", 11: "a"}
    assert pair_brokers([0, 1], [10, 11], racks) == {0: 11, 1: 10}


@pytest.mark.parametrize(
    ("olds", "news", "told"),
    [
        ([0, 1], [10], "2 brokers leave and 1 come"),
        ([0, 1], [1, 2], "broker 1 is both in --from and in --to"),
        ([], [1], "--from"),
    ],
)
def test_brokers_that_cannot_be_paired(olds: list[int], news: list[int], told: str) -> None:
    with pytest.raises(PlanError, match=told):
        pair_brokers(olds, news, {})


def test_coordinator_topics_move_last_and_the_preferred_leader_keeps_its_place() -> None:
    steps = list(steps_of(cluster(orders=(0, 1), offsets=(1, 0)), {0: 10, 1: 11}))
    assert [(step.source, step.is_coordinators, dict(step.plan.targets)) for step in steps] == [
        (0, False, {ORDERS: (10, 1)}),
        (1, False, {ORDERS: (10, 11)}),
        (0, True, {OFFSETS: (1, 10)}),
        (1, True, {OFFSETS: (11, 10)}),
    ]


def test_a_migration_goes_on_from_where_the_replicas_are() -> None:
    steps = list(steps_of(cluster(orders=(10, 1), offsets=(11, 10)), {0: 10, 1: 11}))
    assert [dict(step.plan.targets) for step in steps] == [{ORDERS: (10, 11)}]


def test_a_replica_on_both_brokers_of_a_pair_is_told() -> None:
    with pytest.raises(PlanError, match="orders-0 has replicas on broker 0 and on its successor 10"):
        list(steps_of(cluster(orders=(0, 10)), {0: 10}))
