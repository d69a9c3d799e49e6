"""Every broker is stopped and started in turn while clients run: no produce fails, no fetch fails (row A12).

A shorter story of the same is in tests/cluster/test_cluster.py.
"""

import pytest

from chaos.story import Story
from odradek.apps.lab.cluster import ChaosCluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(400)]


def test_a_rolling_restart_under_load(cluster: ChaosCluster) -> None:
    with Story(cluster) as story:
        for broker in cluster.brokers:
            story.let_it_work()
            broker.stop()
            assert "unclean" not in broker.output.read_text(errors="replace")[-2000:].lower()
            story.let_it_work()
            cluster.start(broker.id)
            story.await_isr(3)
    assert story.verdict == []
    assert [failed.error for failed in story.history.failed] == []
