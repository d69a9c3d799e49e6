"""Replicas move while somebody dies: the move ends, or is cancelled, and nothing is lost (row A10)."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaos.clients import await_condition
from chaos.operations import reassign, reassigning
from chaos.story import Story
from coordination_server import coordination_server
from odradek.apps.lab.cluster import ChaosCluster

from .conftest import site

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


@contextmanager
def moving(cluster: ChaosCluster) -> Iterator[Story]:
    """Every partition is on its way to other brokers while the block runs; it gets there afterwards."""
    with Story(cluster, rate=200) as story:
        story.let_it_work(500)
        homes = {tp: story.replicas(tp) for tp in story.partitions}
        wanted = {tp: tuple((broker + 1) % 4 for broker in replicas) for tp, replicas in homes.items()}
        reassign(cluster, wanted)
        yield story
        assert await_condition(lambda: reassigning(cluster) == 0, 120)
        assert await_condition(lambda: {tp: story.replicas(tp) for tp in story.partitions} == wanted, 60)
        story.await_isr(3)
    assert story.verdict == []


@pytest.mark.soak
def test_all_die_in_the_middle(start_cluster: StartCluster) -> None:
    cluster = start_cluster(brokers=4, settings={"replica.fetch.max.bytes": "4096"})
    with moving(cluster) as story:
        for broker in cluster.brokers:
            broker.kill()
        cluster.start(0, 1, 2, 3)
        story.let_it_work(200)


@pytest.mark.soak
def test_the_controller_is_frozen_in_the_middle_and_wakes_up(start_cluster: StartCluster) -> None:
    cluster = start_cluster(brokers=4, settings={"replica.fetch.max.bytes": "4096"})
    with moving(cluster) as story:
        zombie = cluster.controller()
        assert zombie is not None
        others = [broker for broker in cluster.brokers if broker.id != zombie]
        cluster.brokers[zombie].pause()
        assert await_condition(
            lambda: all((m := b.metadata()) is not None and m.controller_id not in (-1, zombie) for b in others), 60
        )
        story.let_it_work(200)
        cluster.brokers[zombie].resume()
        story.let_it_work(200)


@pytest.mark.soak
def test_zookeeper_restarts_in_the_middle(tmp_path: Path, start_cluster: StartCluster) -> None:
    zookeeper = coordination_server(tmp_path / "zookeeper")
    zookeeper.start()
    try:
        cluster = start_cluster(zookeeper.connect, brokers=4, settings={"replica.fetch.max.bytes": "4096"})
        with moving(cluster) as story:
            zookeeper.kill()
            story.let_it_work(100)
            zookeeper.start()
            story.let_it_work(200)
    finally:
        zookeeper.kill()


@pytest.mark.soak
@pytest.mark.parametrize("cut_from", ["ZooKeeper", "its peers"])
def test_a_leader_is_cut_off_in_the_middle(tmp_path: Path, cut_from: str) -> None:
    with (
        site(tmp_path, 4, settings={"replica.fetch.max.bytes": "4096"}) as (cluster, four_hosts, _),
        moving(cluster) as story,
    ):
        lonely = cluster.leader(story.partitions[0])
        if cut_from == "ZooKeeper":
            four_hosts.cut_from_zookeeper(lonely)
        else:
            four_hosts.cut(lonely, *(broker for broker in range(4) if broker != lonely))
        time.sleep(10)  # longer than a session and a follower's patience
        four_hosts.heal()
        story.let_it_work(200)
