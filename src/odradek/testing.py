"""A pytest plugin: real brokers and a real coordination server for the tests of a project that uses Odradek.

    def test_orders(odradek_cluster):
        producer = Producer({"bootstrap.servers": odradek_cluster.bootstrap_servers})

Installed with the package, so nothing has to be declared. The cluster starts with the first test that asks for it and
is shared by the whole run: use topic names of your own. `odradek_secure_cluster` is the same with TLS, users and ACLs.
pytest's configuration may say more:

    [tool.pytest.ini_options]
    odradek_scope = "module"                                # session unless given: also package, class, function
    odradek_brokers = 3
    odradek_settings = ["message.max.bytes=2000000"]        # of the brokers, as in server.properties
    odradek_topics = ["orders:6", "payments"]               # NAME, or NAME:PARTITIONS

A test that crashes brokers has a cluster of its own; with `lab=True` they can be cut off, too:

    with OdradekCluster(brokers=3, settings={"num.partitions": "3"}, topics=["orders"]) as cluster:
        cluster.kill(0)
"""

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import pytest

from odradek.base.errors import ConfigError, FatalError, KafkaError
from odradek.client.client_security import ClientSecurity
from odradek.client.cluster_client import ClusterClient
from odradek.client.topic_admin import CLUSTER_DEFAULT, create_topic
from odradek.local.cluster_processes import LocalCluster
from odradek.local.cluster_security import INTERNAL_PORTS_AFTER
from odradek.local.coordinators import CoordinatorKind
from odradek.local.links.cuts import CutFrom
from odradek.local.zookeeper_server import free_ports

_Scope = Literal["session", "package", "module", "class", "function"]
_SCOPES: tuple[_Scope, ...] = ("session", "package", "module", "class", "function")


class OdradekCluster:
    """A cluster of broker processes on free ports, in a directory that goes with the test run.

    `settings` are those of server.properties, for every broker. `topics`: names, or `NAME:PARTITIONS`, created before
    `start_all` returns. Without `coordinator`: Apache ZooKeeper where it can be started, else the embedded coordination
    server, which needs no Java.
    """

    def __init__(
        self,
        data_dir: Path | None = None,
        brokers: int = 1,
        *,
        lab: bool = False,
        secure: bool = False,
        settings: Mapping[str, str] | None = None,
        topics: Iterable[str] = (),
        coordinator: Literal["embedded", "apache"] | None = None,
    ) -> None:
        self._is_temporary = data_dir is None
        self.data_dir = data_dir or Path(tempfile.mkdtemp(prefix="odradek-"))
        self._lab = lab
        self._secure = secure
        self._count = brokers
        self._settings = dict(settings or {})
        self._topics = tuple(topics)
        self._coordinator = None if coordinator is None else CoordinatorKind(coordinator)
        self._processes = LocalCluster(self.data_dir)

    def __enter__(self) -> Self:
        try:
            self.start_all()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        self.stop_all()
        if self._is_temporary:
            shutil.rmtree(self.data_dir, ignore_errors=True)

    @property
    def bootstrap_servers(self) -> str:
        return self._processes.bootstrap_servers

    @property
    def zookeeper(self) -> str:
        """The connect string of its ZooKeeper."""
        return self._processes.zookeeper.connect

    @property
    def client_properties(self) -> Path:
        """The administrator's client file, for a cluster made with `secure`."""
        return self._processes.security.client_file

    @property
    def app_properties(self) -> Path:
        """The application's client file, whose names begin with `app`, likewise."""
        return self._processes.security.application_file

    def start_all(self) -> None:
        """Start every broker; topics are there, with leaders, when it returns."""
        needed = [number + after for after in (0, INTERNAL_PORTS_AFTER) for number in range(self._count)]
        start = partial(self._processes.start, None, free_ports(*needed), self._settings, self._count)
        start(coordinator=self._coordinator, lab=self._lab, secure=self._secure)
        for text in self._topics:
            name, _, partitions = text.partition(":")
            self.create_topic(name, int(partitions) if partitions else CLUSTER_DEFAULT)

    def create_topic(
        self,
        name: str,
        partitions: int = CLUSTER_DEFAULT,
        replication_factor: int = CLUSTER_DEFAULT,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic, and return when every partition has a leader. Raises KafkaError if it is refused."""
        security = ClientSecurity.from_file(self.client_properties) if self._secure else None
        with ClusterClient(self.bootstrap_servers, security=security) as client:
            create_topic(client, name, partitions=partitions, replication_factor=replication_factor, configs=configs)

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
        """Start ZooKeeper again, at the same address and with its data."""
        self._processes.zookeeper.start()

    def pid(self, broker_id: int) -> int | None:
        """The process of the broker, for signals of your own; None when it doesn't run."""
        return self._processes.broker(broker_id).pid

    def broker_log(self, broker_id: int) -> str:
        return self._processes.broker(broker_id).log_file.read_text(errors="replace")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("odradek_scope", "Scope of the odradek_cluster fixture.", default="session")
    parser.addini("odradek_brokers", "Number of brokers of the odradek_cluster fixture.", default="1")
    parser.addini("odradek_settings", "Broker settings of the odradek_cluster fixture, KEY=VALUE.", type="linelist")
    parser.addini("odradek_topics", "Topics of the odradek_cluster fixture, NAME or NAME:PARTITIONS.", type="linelist")


def _scope(fixture_name: str, config: pytest.Config) -> _Scope:
    given = config.getini("odradek_scope")
    for scope in _SCOPES:
        if scope == given:
            return scope
    raise pytest.UsageError(f"odradek_scope={given} is not valid; valid: {', '.join(_SCOPES)}")


@pytest.fixture(scope=_scope)
def odradek_cluster(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OdradekCluster]:
    """A cluster as pytest's configuration says, by default one broker for the whole run."""
    pairs = (setting.partition("=") for setting in pytestconfig.getini("odradek_settings"))
    cluster = OdradekCluster(
        tmp_path_factory.mktemp("odradek"),
        int(pytestconfig.getini("odradek_brokers")),
        settings={key.strip(): value.strip() for key, _, value in pairs},
        topics=pytestconfig.getini("odradek_topics"),
    )
    try:
        cluster.start_all()
    except (ConfigError, FatalError, KafkaError) as error:
        cluster.stop_all()
        pytest.fail(f"the Odradek cluster did not start: {error}", pytrace=False)
    try:
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
