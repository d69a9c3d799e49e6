"""A broker that is frozen past its session wakes up believing that it still leads and controls (rows A2, A3, B5)."""

import pytest

from chaos.clients import await_condition
from chaos.story import Story
from odradek.apps.lab.cluster import ChaosCluster

pytestmark = pytest.mark.timeout(400)


def test_a_frozen_leader_and_controller_wakes_up(cluster: ChaosCluster) -> None:
    with Story(cluster) as story:
        story.let_it_work()
        zombie = cluster.controller()
        assert zombie is not None
        assert zombie in {cluster.leader(tp) for tp in story.partitions}
        others = [broker for broker in cluster.brokers if broker.id != zombie]
        cluster.brokers[zombie].pause()

        def replaced() -> bool:
            told = [broker.metadata() for broker in others]
            return all(
                m is not None and m.controller_id not in (-1, zombie) and zombie not in [b.node_id for b in m.brokers]
                for m in told
            )

        assert await_condition(replaced, 60)
        story.let_it_work(300)
        cluster.brokers[zombie].resume()
        story.let_it_work(300)
        story.await_isr(3)
        assert cluster.controller() != zombie
    assert story.verdict == []
