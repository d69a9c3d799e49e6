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
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
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
    server, which needs no Java. Raises ConfigError if a topic or the number of brokers isn't valid.
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
        if brokers < 1:
            raise ConfigError(f"a cluster has at least one broker, not {brokers}")
        self._count = brokers
        self._topics = [_topic(text) for text in topics]
        self._coordinator = None if coordinator is None else CoordinatorKind(coordinator)
        self._settings = dict(settings or {})
        self._lab = lab
        self._secure = secure
        self._is_temporary = data_dir is None
        self.data_dir = data_dir or Path(tempfile.mkdtemp(prefix="odradek-"))
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
        start(coordinator=self._coordinator, lab=self._lab, secure=self._secure, remark=_warn)
        for name, partitions in self._topics:
            self.create_topic(name, partitions)

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


def _topic(text: str) -> tuple[str, int]:
    """Name and number of partitions of `NAME` or `NAME:PARTITIONS`."""
    name, colon, partitions = text.partition(":")
    if colon and not partitions.isdecimal():
        raise ConfigError(f"topic '{text}' is not NAME or NAME:PARTITIONS")
    return name, int(partitions) if colon else CLUSTER_DEFAULT


def _warn(text: str) -> None:
    """An unknown setting, or one without effect, is shown in pytest's summary of warnings."""
    warnings.warn(f"Odradek: {text}", stacklevel=2)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("odradek_scope", "Scope of the odradek_cluster fixture.", default="session")
    parser.addini("odradek_brokers", "Number of brokers of the odradek_cluster fixture.", default="1")
    parser.addini("odradek_settings", "Broker settings of the odradek_cluster fixture, KEY=VALUE.", type="linelist")
    parser.addini("odradek_topics", "Topics of the odradek_cluster fixture, NAME or NAME:PARTITIONS.", type="linelist")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse what can't be meant before tests are collected, in one line."""
    if (given := config.getini("odradek_scope")) not in _SCOPES:
        raise pytest.UsageError(f"odradek_scope={given} is not valid; valid: {', '.join(_SCOPES)}")
    if not (count := config.getini("odradek_brokers")).isdecimal() or not int(count):
        raise pytest.UsageError(f"odradek_brokers={count} is not a number of brokers")
    for setting in config.getini("odradek_settings"):
        if not all(setting.partition("=")[:2]):
            raise pytest.UsageError(f"odradek_settings: '{setting}' is not KEY=VALUE")
    try:
        for topic in config.getini("odradek_topics"):
            _topic(topic)
    except ConfigError as error:
        raise pytest.UsageError(f"odradek_topics: {error}") from None


def _scope(fixture_name: str, config: pytest.Config) -> _Scope:
    return next(scope for scope in _SCOPES if scope == config.getini("odradek_scope"))


@contextmanager
def _started(make: Callable[[], OdradekCluster]) -> Iterator[OdradekCluster]:
    """The cluster while tests run; a start that fails is one line of pytest's output, and leaves nothing running."""
    problem = ""
    try:
        cluster = make()
        try:
            cluster.start_all()
        except BaseException:
            cluster.stop_all()
            raise
    except (ConfigError, FatalError, KafkaError, OSError) as error:
        problem = str(error)
    if problem:
        pytest.fail(f"the Odradek cluster did not start: {problem}", pytrace=False)
    try:
        yield cluster
    finally:
        cluster.stop_all()


@pytest.fixture(scope=_scope)
def odradek_cluster(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OdradekCluster]:
    """A cluster as pytest's configuration says, by default one broker for the whole run."""
    pairs = (setting.partition("=") for setting in pytestconfig.getini("odradek_settings"))
    make = partial(
        OdradekCluster,
        tmp_path_factory.mktemp("odradek"),
        int(pytestconfig.getini("odradek_brokers")),
        settings={key.strip(): value.strip() for key, _, value in pairs},
        topics=pytestconfig.getini("odradek_topics"),
    )
    with _started(make) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def odradek_secure_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OdradekCluster]:
    """One broker with TLS, users and ACLs; `client_properties` and `app_properties` are how to connect."""
    with _started(partial(OdradekCluster, tmp_path_factory.mktemp("odradek-secure"), secure=True)) as cluster:
        yield cluster
