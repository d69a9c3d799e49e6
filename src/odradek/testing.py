"""A pytest plugin: real brokers and a real ZooKeeper for the tests of a project that uses Odradek.

    def test_orders(odradek_cluster):
        producer = Producer({"bootstrap.servers": odradek_cluster.bootstrap_servers})

Installed with the package, so nothing has to be declared. The cluster starts with the first test that asks for it and
is shared by the whole run: use topic names of your own. `odradek_secure_cluster` is the same with TLS, users and ACLs.
For brokers to crash there is `OdradekCluster(directory, brokers=3)`; with `lab=True` they can be cut off, too.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.local.cluster_processes import LocalCluster
from odradek.local.cluster_security import INTERNAL_PORTS_AFTER
from odradek.local.links.cuts import CutFrom
from odradek.local.zookeeper_server import free_port, port_is_taken


class OdradekCluster:
    """A cluster of broker processes on free ports, in a directory that goes with the test run."""

    def __init__(self, data_dir: Path, brokers: int = 1, *, lab: bool = False, secure: bool = False) -> None:
        self.data_dir = data_dir
        self._lab = lab
        self._secure = secure
        self._count = brokers
        self._processes = LocalCluster(data_dir)

    @property
    def bootstrap_servers(self) -> str:
        return self._processes.bootstrap_servers

    @property
    def zookeeper(self) -> str:
        """The connect string of its ZooKeeper."""
        return self._processes.zookeeper.connect

    @property
    def client_properties(self) -> Path:
        """Of the administrator, for a cluster made with `secure`."""
        return self._processes.security.client_file

    @property
    def app_properties(self) -> Path:
        """Of the application, whose names begin with `app`, likewise."""
        return self._processes.security.application_file

    def start_all(self) -> None:
        self._processes.start(None, _free_ports(self._count), {}, self._count, lab=self._lab, secure=self._secure)

    def stop_all(self) -> None:
        self._processes.stop()

    def kill(self, broker_id: int) -> None:
        """Crashes the broker as kill -9 does."""
        self._processes.broker(broker_id).kill()

    def stop(self, broker_id: int) -> None:
        """Stops the broker cleanly."""
        self._processes.broker(broker_id).stop()

    def start(self, broker_id: int) -> None:
        """Starts the broker again and returns when it serves."""
        self._processes.start_broker(broker_id)

    def cut(self, broker_id: int, *whom: CutFrom) -> None:
        """Cuts the broker off ZooKeeper, the other brokers, or both; the cluster must have been made with `lab`."""
        self._processes.cut(broker_id, whom or tuple(CutFrom))

    def heal(self, broker_id: int) -> None:
        self._processes.heal(broker_id)

    def stop_zookeeper(self) -> None:
        """Brokers lose their connection, and with it what they elect and create."""
        self._processes.zookeeper.stop()

    def start_zookeeper(self) -> None:
        """At the same address, with all it knew."""
        self._processes.zookeeper.start()

    def pid(self, broker_id: int) -> int | None:
        """The process of the broker, for signals of your own; None when it doesn't run."""
        return self._processes.broker(broker_id).pid

    def broker_log(self, broker_id: int) -> str:
        return self._processes.broker(broker_id).log_file.read_text(errors="replace")


def _free_ports(count: int) -> int:
    """Return the first of so many consecutive free ports, with the free ports that secured brokers need besides."""
    while True:
        first = free_port()
        others = [first + i + after for after in (0, INTERNAL_PORTS_AFTER) for i in range(count)]
        if not any(map(port_is_taken, others)):
            return first


@pytest.fixture(scope="session")
def odradek_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OdradekCluster]:
    cluster = OdradekCluster(tmp_path_factory.mktemp("odradek"))
    try:
        cluster.start_all()
        yield cluster
    finally:
        cluster.stop_all()


@pytest.fixture(scope="session")
def odradek_secure_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OdradekCluster]:
    """One broker with TLS, users and ACLs; `client_properties` and `app_properties` are how to connect."""
    cluster = OdradekCluster(tmp_path_factory.mktemp("odradek-secure"), secure=True)
    try:
        cluster.start_all()
        yield cluster
    finally:
        cluster.stop_all()
