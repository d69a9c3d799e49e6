"""Brokers that die by kill -9: nothing acknowledged is lost or doubled, the survivors go on (rows A2, A12, B2–B5).

By default all die at once; shorter stories of one and two that die are in tests/cluster/test_cluster.py.
"""

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from chaos.clients import await_condition
from chaos.operations import elect_preferred
from chaos.story import TOPIC, Story
from odradek.apps.lab.cluster import ChaosCluster

pytestmark = pytest.mark.timeout(400)


@pytest.mark.soak
def test_a_leader_dies_and_returns(cluster: ChaosCluster) -> None:
    with Story(cluster) as story:
        story.let_it_work()
        leader = next(cluster.leader(tp) for tp in story.partitions if cluster.leader(tp) != cluster.controller())
        cluster.brokers[leader].kill()
        story.let_it_work(300)
        story.await_isr(2)
        cluster.start(leader)
        story.await_isr(3)
        story.let_it_work()
    assert story.verdict == []


@pytest.mark.soak
def test_the_controller_dies_which_also_leads(cluster: ChaosCluster) -> None:
    with Story(cluster) as story:
        story.let_it_work()
        elect_preferred(cluster)  # a slow machine may have cost a broker its session, and so its leaders
        assert await_condition(lambda: cluster.controller() in {cluster.leader(tp) for tp in story.partitions}, 60)
        before = cluster.controller()
        assert before is not None
        cluster.brokers[before].kill()
        story.let_it_work(300)
        assert await_condition(lambda: cluster.controller() not in (None, before), 60)
        cluster.start(before)
        story.await_isr(3)
    assert story.verdict == []


@pytest.mark.soak
def test_two_of_three_die(cluster: ChaosCluster) -> None:
    """With one replica left nothing is acknowledged, and the producer is told why; with two it goes on."""
    with Story(cluster) as story:
        story.let_it_work()
        for broker in cluster.brokers[1:]:
            broker.kill()
        survivor = cluster.brokers[0]
        assert await_condition(
            lambda: all(v == {(0, e, frozenset({0}))} for v in map(cluster.views, story.partitions) for _, e, _ in v),
            60,
        )
        with pytest.raises(KafkaException) as refused:
            _produce_once(survivor.bootstrap)
        assert refused.value.args[0].code() in (KafkaError.NOT_ENOUGH_REPLICAS, KafkaError._MSG_TIMED_OUT)
        cluster.start(1)
        story.let_it_work(300)
    assert story.verdict == []


def _produce_once(bootstrap: str) -> None:
    """One record without retries; its error is raised."""
    outcome: list[KafkaError | None] = []
    producer = Producer(
        {"bootstrap.servers": bootstrap, "acks": "all", "retries": 0, "message.timeout.ms": 20_000, "log_level": 0}
    )
    producer.produce(TOPIC, b"refused", partition=0, on_delivery=lambda error, _: outcome.append(error))
    producer.flush(60)
    if outcome[0] is not None:
        raise KafkaException(outcome[0])


def test_all_three_die_at_once(cluster: ChaosCluster) -> None:
    with Story(cluster) as story:
        story.let_it_work(300)
        for broker in cluster.brokers:
            broker.kill()
        cluster.start(0, 1, 2)
        story.let_it_work(300)
    assert story.verdict == []


@pytest.mark.soak
def test_the_leader_is_hunted(cluster: ChaosCluster) -> None:
    """Five times whoever leads partition 0 dies, and is brought back while the next one dies."""
    with Story(cluster) as story:
        for _ in range(5):
            story.let_it_work(200)
            leader = cluster.leader(story.partitions[0])
            cluster.brokers[leader].kill()
            story.let_it_work(200)
            cluster.start(leader)
            story.await_isr(3)
    assert story.verdict == []
