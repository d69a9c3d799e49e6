"""The judge proves itself: brokers with a fault planted on purpose are found out (see planted/sitecustomize.py)."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.clients import await_condition
from chaos.story import Story
from coordination_server import coordination_server
from odradek.apps.lab.cluster import ChaosCluster
from odradek.apps.lab.hosts import Hosts

pytestmark = pytest.mark.timeout(400)
PLANTED = Path(__file__).parent / "planted"
UNREAD_S = 5.0


def environment(fault: str) -> dict[str, str]:
    paths = [str(PLANTED), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"ODRADEK_PLANTED": fault, "PYTHONPATH": os.pathsep.join(paths)}


CLIENTS_GAVE_UP = {"p0:", "p1:", "c0:", "c1:"}
"""A producer whose next sequence is refused, a consumer that is told of a truncated log: both have noticed."""


def kinds(story: Story) -> set[str]:
    return {line.split()[0] for line in story.verdict}


def test_acknowledging_before_replication_is_found(start_cluster: Callable[..., ChaosCluster]) -> None:
    cluster = start_cluster(environment=environment("ack-before-replication"))
    with Story(cluster, drain_s=UNREAD_S) as story:
        story.let_it_work()
        leader = cluster.leader(story.partitions[0])
        followers = [broker for broker in cluster.brokers if broker.id != leader]
        for follower in followers:
            follower.pause()
        story.let_it_work(20)
        cluster.brokers[leader].kill()
        for follower in followers:
            follower.resume()
        # until then the killed one could come back and lead on, with all it had written
        assert await_condition(lambda: cluster.leader(story.partitions[0]) not in (-1, leader), 60)
    assert {"LOST", "UNSEEN", "INCONSISTENT_OFFSET"} & kinds(story), story.verdict


def test_truncating_by_high_watermark_is_found(start_cluster: Callable[..., ChaosCluster]) -> None:
    cluster = start_cluster(environment=environment("truncate-by-high-watermark"))
    with Story(cluster, drain_s=UNREAD_S, delivery_timeout_ms=20_000) as story:
        story.let_it_work(200)
        for broker in cluster.brokers:
            broker.kill()
        cluster.start(0, 1, 2)
        story.await_isr(3)
    assert {"LOST", "UNSEEN", "INCONSISTENT_OFFSET", *CLIENTS_GAVE_UP} & kinds(story), story.verdict


@pytest.fixture
def far_zookeeper(three_hosts: Hosts, tmp_path: Path) -> Iterator[str]:
    zookeeper = coordination_server(tmp_path / "zookeeper", host=three_hosts.zookeeper_address)
    zookeeper.start()
    yield zookeeper.connect
    zookeeper.stop()


@pytest.mark.soak
def test_writing_duplicates_is_found(
    three_hosts: Hosts, far_zookeeper: str, start_cluster: Callable[..., ChaosCluster]
) -> None:
    """Acknowledgements get lost on the way to the clients, which send again."""
    cluster = start_cluster(far_zookeeper, hosts=three_hosts, environment=environment("write-duplicates"))
    with Story(cluster, drain_s=UNREAD_S, request_timeout_ms=2000) as story:
        story.let_it_work()
        deaf = cluster.leader(story.partitions[0])
        three_hosts.cut_from_clients(deaf)
        sent = len(story.history.sent)
        assert await_condition(lambda: len(story.history.sent) > sent + 1200, 120)  # longer than a request may take
        three_hosts.heal()
        story.let_it_work(200)
    assert "DUPLICATE" in kinds(story), story.verdict
