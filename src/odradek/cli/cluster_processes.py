"""A cluster on one machine: the processes that `odradek up` starts, and the directory that keeps them.

    DIR/zookeeper/                     the embedded ZooKeeper, unless another one is used
    DIR/broker-N/server.properties     what the broker was started with; edits survive the next `up`
    DIR/broker-N/logs/                 its data
    DIR/broker-N/broker.log, .pid      its output and its process

Everything is found again through the directory, so any later command may stop, crash or restart a part of it. Used by
the lifecycle commands and by the pytest plugin.
"""

import socket
import struct
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from odradek.base.config.properties import format_properties, parse_properties
from odradek.base.errors import FatalError
from odradek.base.owned_process import OwnedProcess
from odradek.zk.server import EmbeddedZooKeeper, port_is_taken

_START_SECONDS_MAX = 60.0
_STOP_SECONDS_MAX = 60.0
_PORT_SECONDS_MAX = 1.0
# A local cluster notices a crash within seconds, and its internal topics need no more replicas than it has brokers.
_LOCAL_SETTINGS = {
    "zookeeper.session.timeout.ms": "6000",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


def _freed(port: int) -> bool:
    """Whether nobody listens there; a process that was just killed gets a moment to let go."""
    deadline = time.monotonic() + _PORT_SECONDS_MAX
    while port_is_taken(port):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
    return True


class LocalBroker:
    def __init__(self, directory: Path, broker_id: int) -> None:
        self.id = broker_id
        self.log_file = directory / "broker.log"
        self._directory = directory
        self._properties_file = directory / "server.properties"
        self._process = OwnedProcess(directory / "broker.pid", self._properties_file)

    @property
    def pid(self) -> int | None:
        return self._process.pid()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the first listener."""
        listener = self._properties()["listeners"].split(",")[0]
        host, _, port = listener.partition("://")[2].rpartition(":")
        return host.strip("[]") or "127.0.0.1", int(port)

    def configure(self, zookeeper: str, port: int | None, settings: Mapping[str, str]) -> None:
        """Writes server.properties; of an earlier one everything stays that isn't given anew."""
        earlier = self._properties() if self._properties_file.exists() else {}
        self._directory.mkdir(parents=True, exist_ok=True)
        properties = {
            "broker.id": str(self.id),
            "listeners": "PLAINTEXT://127.0.0.1:9092",
            "log.dirs": str(self._directory / "logs"),
            **_LOCAL_SETTINGS,
            **earlier,
            "zookeeper.connect": zookeeper,
        }
        if port is not None:
            properties["listeners"] = f"PLAINTEXT://127.0.0.1:{port}"
        self._properties_file.write_text(format_properties({**properties, **settings}))

    def start(self) -> None:
        """Starts the process unless it runs already; `await_serving` says when it is ready."""
        if self.pid is not None:
            return
        _, port = self.address
        if not _freed(port):
            raise FatalError(
                f"port {port} of broker {self.id} is taken by another process: stop that process, "
                "or choose another port with: odradek up --port PORT"
            )
        command = [sys.executable, "-m", "odradek", "broker", str(self._properties_file)]
        self._process.spawn(command, self.log_file)

    def await_serving(self) -> None:
        deadline = time.monotonic() + _START_SECONDS_MAX
        while not answers_api_versions(self.address):
            if self.pid is None:
                raise FatalError(f"broker {self.id} did not start: {self._last_words()} (see {self.log_file})")
            if time.monotonic() >= deadline:
                raise FatalError(f"broker {self.id} does not answer after {_START_SECONDS_MAX:.0f} s: {self.log_file}")
            time.sleep(0.02)

    def stop(self) -> bool:
        return self._process.stop(_STOP_SECONDS_MAX)

    def kill(self) -> bool:
        return self._process.kill()

    def _properties(self) -> dict[str, str]:
        return parse_properties(self._properties_file.read_text())

    def _last_words(self) -> str:
        """The line in which the broker says why it stopped, else its last one."""
        lines = self.log_file.read_text(errors="replace").strip().splitlines() if self.log_file.exists() else []
        reasons = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
        return (reasons or lines or ["it left no message"])[-1]


class LocalCluster:
    def __init__(self, data: Path) -> None:
        self.data = data.absolute()
        self.zookeeper = EmbeddedZooKeeper(self.data / "zookeeper")

    @property
    def brokers(self) -> list[LocalBroker]:
        """Those that were ever started here, by id."""
        ids = sorted(int(path.parent.name.removeprefix("broker-")) for path in self.data.glob("broker-*/*.properties"))
        return [self._broker(broker_id) for broker_id in ids]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join("{}:{}".format(*broker.address) for broker in self.brokers)

    @property
    def running(self) -> bool:
        return self.zookeeper.pid is not None or any(broker.pid is not None for broker in self.brokers)

    def broker(self, broker_id: int) -> LocalBroker:
        known = [broker.id for broker in self.brokers]
        if broker_id not in known:
            there = f"there are: {', '.join(map(str, known))}" if known else "start one with: odradek up"
            raise FatalError(f"there is no broker {broker_id} in {self.data}; {there}")
        return self._broker(broker_id)

    def start(self, zookeeper: str | None, port: int | None, settings: Mapping[str, str]) -> None:
        """ZooKeeper, unless one is given, then the broker; returns when it serves."""
        broker = self._broker(0)
        if broker.pid is None:
            if zookeeper is None:
                self.zookeeper.start()
                zookeeper = self.zookeeper.connect
            broker.configure(zookeeper, port, settings)
            broker.start()
        elif zookeeper is not None or port is not None or settings:
            raise FatalError(
                f"broker 0 of {self.data} runs already and keeps its configuration: to change it, stop it first with: "
                f"odradek down --data {self.data}"
            )
        broker.await_serving()

    def start_broker(self, broker_id: int) -> LocalBroker:
        """One broker again, with the configuration that it has."""
        broker = self.broker(broker_id)
        if self.zookeeper.exists:
            self.zookeeper.start()
        broker.start()
        broker.await_serving()
        return broker

    def stop(self) -> bool:
        """Brokers first, so that they can say goodbye. Whether anything had been running."""
        stopped = [broker.stop() for broker in self.brokers]
        return self.zookeeper.stop() or any(stopped)

    def _broker(self, broker_id: int) -> LocalBroker:
        return LocalBroker(self.data / f"broker-{broker_id}", broker_id)


def answers_api_versions(address: tuple[str, int]) -> bool:
    """Whether an ApiVersions request is answered with the correlation id it was sent with."""
    correlation_id = 7
    request = struct.pack(">hhih", 18, 0, correlation_id, -1)
    try:
        with socket.create_connection(address, timeout=2) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            size, answered_id = struct.unpack(">ii", connection.recv(8, socket.MSG_WAITALL))
            # to the end, since closing on unread bytes would look like a broken connection in the broker's log
            connection.recv(min(max(size - 4, 0), 1 << 16), socket.MSG_WAITALL)
    except (OSError, struct.error):
        return False
    return bool(answered_id == correlation_id)
