"""Starts and stops the two systems under test: as many brokers each, with a ZooKeeper of its own and the same settings.

A broker is a child of this process and is addressed by its pid, so that both are timed and metered in the same way.
"""

import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from odradek.base.errors import FatalError
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.local.server_process import START_SECONDS_MAX, ServerProcess, odradek_command
from odradek.local.zookeeper_server import free_port, zookeeper_mode
from odradek.security.jaas import SCRAM_MODULE

START_LIMIT_S = START_SECONDS_MAX
STOP_LIMIT_S = 60.0
POLL_INTERVAL_S = 0.005
_ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": ""}
"""A Python that may keep its compiled modules, as an installed one does."""
SESSION_TIMEOUT_MS = 6000
SCRAM = "SCRAM-SHA-512"

# Options of the JVM in Kafka's own start scripts.
JVM_OPTIONS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)

LOG4J = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


class BenchError(FatalError):
    """A system did not stop or answer; the message has the end of its log."""


@dataclass(frozen=True, slots=True)
class ListenerStores:
    """Files and ports of secured listeners, in PEM, which both systems read."""

    key_and_certificate: Path
    tls_port: int = field(default_factory=free_port)
    sasl_port: int = field(default_factory=free_port)

    def properties(self) -> str:
        return (
            f"ssl.keystore.type=PEM\nssl.keystore.location={self.key_and_certificate}\n"
            f"sasl.enabled.mechanisms={SCRAM}\n"
            f"listener.name.sasl_plaintext.{SCRAM.lower()}.sasl.jaas.config={SCRAM_MODULE} required;\n"
            "authorizer.class.name=kafka.security.authorizer.AclAuthorizer\nsuper.users=User:ANONYMOUS;User:admin\n"
        )


@dataclass(slots=True)
class System(ABC):
    """Brokers and their ZooKeeper in a directory of their own."""

    name: str
    directory: Path
    kafka_lib: Path
    size: int = 1
    security: ListenerStores | None = None
    """Adds listeners with TLS and with SASL, and an authorizer."""
    zookeeper_port: int = field(default_factory=free_port)
    ports: list[int] = field(default_factory=list)
    _zookeeper: ServerProcess | None = None
    _brokers: dict[int, ServerProcess] = field(default_factory=dict)

    @abstractmethod
    def broker_command(self, properties: Path) -> Sequence[str]: ...

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    @property
    def port(self) -> int:
        return self.ports[0]

    @property
    def broker_pids(self) -> list[int]:
        """Process ids of the running brokers, by broker id."""
        return [process.pid for _, process in sorted(self._brokers.items()) if process.pid is not None]

    def start(self) -> None:
        self.ports = self.ports or [free_port() for _ in range(self.size)]
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "log4j.properties").write_text(LOG4J)
        self._start_zookeeper()
        for broker_id in range(self.size):
            self.start_broker(broker_id)

    def stop(self) -> None:
        for broker_id in list(self._brokers):
            self.stop_broker(broker_id)
        if self._zookeeper is not None:
            _stop(self._zookeeper)
            self._zookeeper = None

    def remove(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    def start_broker(self, broker_id: int = 0) -> float:
        """Seconds from the birth of the process to its first answer."""
        properties = self.directory / f"server-{broker_id}.properties"
        properties.write_text(self._server_properties(broker_id))
        log = self.directory / f"broker-{broker_id}.log"
        broker = ServerProcess(f"{self.name} {broker_id}", properties, log, self.broker_command, _ENVIRONMENT)
        self._brokers[broker_id] = broker
        start = time.monotonic()
        broker.start()
        broker.await_serving(lambda: serves(self.ports[broker_id]), poll_seconds=POLL_INTERVAL_S)
        return time.monotonic() - start

    def stop_broker(self, broker_id: int = 0) -> None:
        if (broker := self._brokers.pop(broker_id, None)) is not None:
            _stop(broker)

    def kill_broker(self, broker_id: int) -> None:
        """Kill the broker, as a crash would."""
        self._brokers.pop(broker_id).kill()

    def java(self, heap: str, *arguments: str) -> list[str]:
        log4j = f"-Dlog4j.configuration=file:{self.directory}/log4j.properties"
        return ["java", f"-Xms{heap}", f"-Xmx{heap}", *JVM_OPTIONS, log4j, "-cp", f"{self.kafka_lib}/*", *arguments]

    def _start_zookeeper(self) -> None:
        config = self.directory / "zookeeper.properties"
        config.write_text(
            f"dataDir={self.directory}/zookeeper\nclientPortAddress=127.0.0.1\nclientPort={self.zookeeper_port}\n"
            "tickTime=2000\nmaxClientCnxns=0\nadmin.enableServer=false\n"
        )
        main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self._zookeeper = ServerProcess(
            "ZooKeeper", config, self.directory / "zookeeper.log", lambda file: self.java("512m", main_class, str(file))
        )
        self._zookeeper.start()
        self._zookeeper.await_serving(lambda: zookeeper_mode(f"127.0.0.1:{self.zookeeper_port}") is not None)

    def _server_properties(self, broker_id: int) -> str:
        listeners, secured = f"PLAINTEXT://127.0.0.1:{self.ports[broker_id]}", ""
        if self.security is not None:
            stores = self.security
            listeners += f",SSL://127.0.0.1:{stores.tls_port},SASL_PLAINTEXT://127.0.0.1:{stores.sasl_port}"
            secured = stores.properties()
        return (
            f"broker.id={broker_id}\nlisteners={listeners}\n{secured}"
            f"log.dirs={self.directory}/data-{broker_id}\n"
            f"zookeeper.connect=127.0.0.1:{self.zookeeper_port}\nzookeeper.session.timeout.ms={SESSION_TIMEOUT_MS}\n"
            f"offsets.topic.replication.factor={self.size}\noffsets.topic.num.partitions=1\n"
            f"transaction.state.log.replication.factor={self.size}\ntransaction.state.log.num.partitions=1\n"
            f"transaction.state.log.min.isr={min(self.size, 2)}\n"
            "group.initial.rebalance.delay.ms=0\nmax.connections.per.ip=10000\n"
            "log.segment.delete.delay.ms=1000\nauto.leader.rebalance.enable=false\n"
        )


class Kafka(System):
    def broker_command(self, properties: Path) -> Sequence[str]:
        return self.java("1g", "kafka.Kafka", str(properties))


class Odradek(System):
    def broker_command(self, properties: Path) -> Sequence[str]:
        return odradek_command(properties)


def _stop(process: ServerProcess) -> None:
    asked_at = time.monotonic()
    process.stop(STOP_LIMIT_S)
    if time.monotonic() - asked_at > STOP_LIMIT_S:
        raise BenchError(f"did not stop within {STOP_LIMIT_S:.0f} s: {process.last_words()}")


def serves(port: int) -> bool:
    """Return whether the broker there answers ApiVersions."""
    try:
        BrokerClient("127.0.0.1", port, timeout_ms=5000).close()
    except ConnectionFailed:
        return False
    return True
