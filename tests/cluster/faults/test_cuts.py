"""Brokers on hosts of their own whose network breaks in one place: connections stay open and go silent (A3, B2).

The stories share their hosts: each has a topic of its own, and ends with everything healed.
"""

from collections.abc import Iterator

import pytest

from chaos.clients import await_condition
from chaos.story import Story
from odradek.apps.lab.cluster import ChaosCluster
from odradek.apps.lab.hosts import Hosts

from .conftest import Site, site

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("cuts"), 3) as made:
        yield made


@pytest.fixture
def cluster(three: Site) -> ChaosCluster:
    return three.cluster


@pytest.fixture
def three_hosts(three: Site) -> Iterator[Hosts]:
    yield three.hosts
    three.hosts.heal()


def test_a_broker_is_cut_off_from_zookeeper_only(cluster: ChaosCluster, three_hosts: Hosts) -> None:
    """Its session ends, others take over; it finds out that it is fenced, and comes back when the cut is mended."""
    with Story(cluster, topic="from-zookeeper") as story:
        story.let_it_work()
        lonely = cluster.controller()
        assert lonely is not None
        three_hosts.cut_from_zookeeper(lonely)
        others = [broker for broker in cluster.brokers if broker.id != lonely]
        assert await_condition(
            lambda: all((m := b.metadata()) is not None and m.controller_id not in (-1, lonely) for b in others), 60
        )
        story.let_it_work(300)
        three_hosts.heal()
        story.await_isr(3)
        story.let_it_work()
    assert story.verdict == []


def test_a_leader_is_cut_off_from_its_peers_only(cluster: ChaosCluster, three_hosts: Hosts) -> None:
    """It can't shrink its ISR, since the controller is cut off too, so it acknowledges nothing; then it goes on."""
    with Story(cluster, topic="from-peers") as story:
        story.let_it_work()
        lonely = next(leader for tp in story.partitions if (leader := cluster.leader(tp)) != cluster.controller())
        three_hosts.cut(lonely, *{0, 1, 2} - {lonely})
        story.let_it_work(200)
        three_hosts.heal()
        story.await_isr(3)
        story.let_it_work()
    assert story.verdict == []


@pytest.mark.soak
def test_two_brokers_are_cut_off_from_each_other(cluster: ChaosCluster, three_hosts: Hosts) -> None:
    """Each leads something that the other follows: both ISRs shrink, the controller sees both."""
    with Story(cluster, topic="from-each-other") as story:
        story.let_it_work()
        controller = cluster.controller()
        first, second = (n for n in range(3) if n != controller)
        three_hosts.cut(first, second)
        story.let_it_work(600)
        three_hosts.heal()
        story.await_isr(3)
    assert story.verdict == []


@pytest.mark.soak
def test_acknowledgements_get_lost(cluster: ChaosCluster, three_hosts: Hosts) -> None:
    """A leader is heard by nobody but its peers: clients send again what it has written already."""
    with Story(cluster, topic="from-clients", request_timeout_ms=2000) as story:
        story.let_it_work()
        three_hosts.cut_from_clients(cluster.leader(story.partitions[0]))
        sent = len(story.history.sent)
        assert await_condition(lambda: len(story.history.sent) > sent + 1200, 120)  # longer than a request may take
        three_hosts.heal()
        story.let_it_work(200)
    assert story.verdict == []
