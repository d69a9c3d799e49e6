"""Fixtures of the stories: a ZooKeeper, and clusters that a story has to itself."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from coordination_server import coordination_server
from odradek.apps.lab import hosts
from odradek.apps.lab.cluster import ChaosCluster
from odradek.local.zookeeper_server import EmbeddedZooKeeper

StartCluster = Callable[..., ChaosCluster]


@pytest.fixture
def start_cluster(tmp_path: Path, zookeeper: str) -> Iterator[StartCluster]:
    """Three brokers, or as many as asked for, on loopback; gone when the test ends."""
    with ExitStack() as stack:

        def start(connect: str = zookeeper, **options: Any) -> ChaosCluster:
            # a client of an earlier test may still ask for its topic, at a port that is used again
            options["settings"] = {"auto.create.topics.enable": "false", **options.get("settings", {})}
            return stack.enter_context(ChaosCluster(tmp_path / "cluster", connect, **options))

        yield start


@pytest.fixture
def cluster(start_cluster: StartCluster) -> ChaosCluster:
    return start_cluster()


class Site(NamedTuple):
    """A cluster whose brokers, and ZooKeeper, can be cut off from each other."""

    cluster: ChaosCluster
    hosts: hosts.Hosts
    zookeeper: EmbeddedZooKeeper


@contextmanager
def site(directory: Path, brokers: int, **options: object) -> Iterator[Site]:
    if not hosts.available():
        pytest.skip("network namespaces need root and iproute2")
    with hosts.Hosts(brokers) as made:
        zookeeper = coordination_server(directory / "zookeeper", host=made.zookeeper_address)
        zookeeper.start()
        try:
            address = zookeeper.connect
            with ChaosCluster(directory / "cluster", address, brokers=brokers, hosts=made, **options) as cluster:  # type: ignore[arg-type]
                yield Site(cluster, made, zookeeper)
        finally:
            zookeeper.stop()


@pytest.fixture
def three_hosts() -> Iterator[hosts.Hosts]:
    if not hosts.available():
        pytest.skip("network namespaces need root and iproute2")
    with hosts.Hosts(3) as made:
        yield made
