"""Replicas move while somebody dies: the move ends, or is cancelled, and nothing is lost (row A10)."""

from collections.abc import Callable

import pytest

from odradek.lab.chaos.clients import await_condition
from odradek.lab.chaos.cluster import ChaosCluster
from odradek.lab.chaos.operations import reassign, reassigning
from odradek.lab.chaos.story import Story

StartCluster = Callable[..., ChaosCluster]
pytestmark = pytest.mark.timeout(400)


def test_the_controller_dies_in_the_middle(start_cluster: StartCluster) -> None:
    cluster = start_cluster(brokers=4, settings={"replica.fetch.max.bytes": "4096"})
    with Story(cluster, rate=200) as story:
        story.let_it_work(500)
        homes = {tp: story.replicas(tp) for tp in story.partitions}
        wanted = {tp: tuple((broker + 1) % 4 for broker in replicas) for tp, replicas in homes.items()}
        reassign(cluster, wanted)
        controller = cluster.controller()
        assert controller is not None
        cluster.brokers[controller].kill()
        story.let_it_work(200)
        cluster.start(controller)
        assert await_condition(lambda: reassigning(cluster) == 0, 120)
        assert await_condition(lambda: {tp: story.replicas(tp) for tp in story.partitions} == wanted, 60)
        story.await_isr(3)
    assert story.verdict == []


@pytest.mark.parametrize("victim", ["the leader", "the newcomer"])
@pytest.mark.soak
def test_others_die_in_the_middle(start_cluster: StartCluster, victim: str) -> None:
    cluster = start_cluster(brokers=4, settings={"replica.fetch.max.bytes": "4096"})
    with Story(cluster, rate=200) as story:
        story.let_it_work(500)
        tp = story.partitions[0]
        homes = story.replicas(tp)
        newcomer = next(broker for broker in range(4) if broker not in homes)
        wanted = (newcomer, *homes[:2])
        reassign(cluster, {tp: wanted})
        killed = cluster.leader(tp) if victim == "the leader" else newcomer
        cluster.brokers[killed].kill()
        story.let_it_work(200)
        cluster.start(killed)
        assert await_condition(lambda: reassigning(cluster) == 0, 120)
        assert await_condition(lambda: story.replicas(tp) == wanted, 60)
        story.await_isr(3)
    assert story.verdict == []
