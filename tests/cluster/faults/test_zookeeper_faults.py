"""ZooKeeper goes away and comes back: leaders lead on meanwhile, and sessions that outlived it go on (row A3)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.clients import await_condition
from chaos.ensemble import Ensemble
from chaos.story import Story
from coordination_server import coordination_server
from odradek.apps.lab.cluster import ChaosCluster

pytestmark = pytest.mark.timeout(400)


def test_zookeeper_restarts(tmp_path: Path, start_cluster: Callable[..., ChaosCluster]) -> None:
    zookeeper = coordination_server(tmp_path / "zookeeper")
    zookeeper.start()
    try:
        cluster = start_cluster(zookeeper.connect)
        with Story(cluster) as story:
            story.let_it_work()
            zookeeper.kill()
            story.let_it_work(200)
            zookeeper.start()
            story.let_it_work(200)
            # the control path works again: a broker that dies now is replaced
            leader = cluster.leader(story.partitions[0])
            cluster.brokers[leader].kill()
            story.let_it_work(300)
        assert story.verdict == []
    finally:
        zookeeper.kill()


@pytest.mark.soak
def test_the_leader_of_an_ensemble_dies(tmp_path: Path, start_cluster: Callable[..., ChaosCluster]) -> None:
    with Ensemble(tmp_path / "ensemble") as ensemble:
        cluster = start_cluster(ensemble.connect)
        with Story(cluster) as story:
            story.let_it_work()
            leader = ensemble.leader()
            assert leader is not None
            ensemble.kill(leader)
            story.let_it_work(200)
            assert await_condition(lambda: ensemble.leader() not in (None, leader), 60)
            broker = cluster.leader(story.partitions[0])
            cluster.brokers[broker].kill()
            story.let_it_work(300)
            ensemble.start(leader)
        assert story.verdict == []
