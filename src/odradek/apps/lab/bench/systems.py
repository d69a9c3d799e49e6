"""Starts and stops the two systems under test: as many brokers each, with a ZooKeeper of its own and the same settings.

A broker is a child of this process and is addressed by its pid, so that both are timed and metered in the same way.
"""

import os
import shutil
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.local.zookeeper_server import free_port, zookeeper_mode

START_LIMIT_S = 60.0
STOP_LIMIT_S = 60.0
POLL_INTERVAL_S = 0.005
SESSION_TIMEOUT_MS = 6000

# What Kafka's own start scripts give the JVM.
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


class BenchError(RuntimeError):
    """A system did not start, stop or answer; the message has the end of its log."""


@dataclass(slots=True)
class Process:
    """A child with its output in a file."""

    popen: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(cls, command: list[str], log: Path) -> "Process":
        with log.open("ab") as out:
            return cls(
                subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=_environment()), log
            )

    @property
    def pid(self) -> int:
        return self.popen.pid

    def require_alive(self) -> None:
        if self.popen.poll() is not None:
            raise BenchError(f"ended with status {self.popen.returncode}: {self.last_words()}")

    def stop(self) -> None:
        self.popen.terminate()
        try:
            self.popen.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
            raise BenchError(f"did not stop within {STOP_LIMIT_S:.0f} s: {self.last_words()}") from None

    def last_words(self) -> str:
        """The end of the log, which goes with the directory of the run."""
        return " / ".join(self.log.read_text(errors="replace").splitlines()[-3:])


@dataclass(slots=True)
class System(ABC):
    """Brokers and their ZooKeeper in a directory of their own."""

    name: str
    directory: Path
    kafka_lib: Path
    size: int = 1
    zookeeper_port: int = field(default_factory=free_port)
    ports: list[int] = field(default_factory=list)
    _zookeeper: Process | None = None
    _brokers: dict[int, Process] = field(default_factory=dict)

    @abstractmethod
    def broker_command(self, properties: Path) -> list[str]: ...

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    @property
    def port(self) -> int:
        return self.ports[0]

    @property
    def broker_pids(self) -> list[int]:
        """Process ids of the running brokers, by broker id."""
        return [process.pid for _, process in sorted(self._brokers.items())]

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
            self._zookeeper.stop()
            self._zookeeper = None

    def remove(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    def start_broker(self, broker_id: int = 0) -> float:
        """Seconds from the birth of the process to its first answer."""
        properties = self.directory / f"server-{broker_id}.properties"
        properties.write_text(self._server_properties(broker_id))
        start = time.monotonic()
        broker = Process.start(self.broker_command(properties), self.directory / f"broker-{broker_id}.log")
        self._brokers[broker_id] = broker
        await_answer(broker, lambda: serves(self.ports[broker_id]))
        return time.monotonic() - start

    def stop_broker(self, broker_id: int = 0) -> None:
        if (broker := self._brokers.pop(broker_id, None)) is not None:
            broker.stop()

    def kill_broker(self, broker_id: int) -> None:
        """As a crash would."""
        broker = self._brokers.pop(broker_id)
        broker.popen.kill()
        broker.popen.wait()

    def java(self, heap: str, *arguments: str) -> list[str]:
        log4j = f"-Dlog4j.configuration=file:{self.directory}/log4j.properties"
        return ["java", f"-Xms{heap}", f"-Xmx{heap}", *JVM_OPTIONS, log4j, "-cp", f"{self.kafka_lib}/*", *arguments]

    def _start_zookeeper(self) -> None:
        config = self.directory / "zookeeper.properties"
        config.write_text(
            f"dataDir={self.directory}/zookeeper\nclientPortAddress=127.0.0.1\nclientPort={self.zookeeper_port}\n"
            "tickTime=2000\nmaxClientCnxns=0\nadmin.enableServer=false\n"
        )
        command = self.java("512m", "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config))
        self._zookeeper = Process.start(command, self.directory / "zookeeper.log")
        await_answer(self._zookeeper, lambda: zookeeper_mode(f"127.0.0.1:{self.zookeeper_port}") is not None)

    def _server_properties(self, broker_id: int) -> str:
        return (
            f"broker.id={broker_id}\nlisteners=PLAINTEXT://127.0.0.1:{self.ports[broker_id]}\n"
            f"log.dirs={self.directory}/data-{broker_id}\n"
            f"zookeeper.connect=127.0.0.1:{self.zookeeper_port}\nzookeeper.session.timeout.ms={SESSION_TIMEOUT_MS}\n"
            f"offsets.topic.replication.factor={self.size}\noffsets.topic.num.partitions=1\n"
            "group.initial.rebalance.delay.ms=0\nmax.connections.per.ip=10000\n"
            "log.segment.delete.delay.ms=1000\nauto.leader.rebalance.enable=false\n"
        )


class Kafka(System):
    def broker_command(self, properties: Path) -> list[str]:
        return self.java("1g", "kafka.Kafka", str(properties))


def _environment() -> dict[str, str]:
    """A Python that may keep its compiled modules, as an installed one does."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class Odradek(System):
    def broker_command(self, properties: Path) -> list[str]:
        return [sys.executable, "-m", "odradek", "broker", str(properties)]


def await_answer(process: Process, answers: Callable[[], bool]) -> None:
    end = time.monotonic() + START_LIMIT_S
    while not answers():
        process.require_alive()
        if time.monotonic() > end:
            raise BenchError(f"gave no answer within {START_LIMIT_S:.0f} s: {process.last_words()}")
        time.sleep(POLL_INTERVAL_S)


def serves(port: int) -> bool:
    """Return whether the broker there answers ApiVersions."""
    try:
        BrokerClient("127.0.0.1", port, timeout_ms=5000).close()
    except ConnectionFailed:
        return False
    return True
