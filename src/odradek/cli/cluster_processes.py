"""A cluster on one machine: the processes that `odradek up` starts, and the directory that keeps them.

    DIR/zookeeper/                     the embedded ZooKeeper, unless another one is used
    DIR/broker-N/server.properties     what the broker was started with; edits survive the next `up`
    DIR/broker-N/logs/                 its data
    DIR/broker-N/broker.log, .pid      its output and its process
    DIR/console.log, .pid              the web console
    DIR/links/                         with --lab: the relay between the brokers, and between them and ZooKeeper

Everything is found again through the directory, so any later command may stop, crash or restart a part of it. Used by
the lifecycle commands and by the pytest plugin.
"""

import socket
import struct
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from odradek.base.config.properties import format_properties, parse_properties
from odradek.base.errors import FatalError
from odradek.base.owned_process import OwnedProcess
from odradek.cli.console_process import LocalConsole
from odradek.links.cuts import CutFrom
from odradek.links.local_links import LocalLinks
from odradek.links.plan import is_linked
from odradek.zk.server import EmbeddedZooKeeper, port_is_taken

_START_SECONDS_MAX = 60.0
_STOP_SECONDS_MAX = 60.0
_PORT_SECONDS_MAX = 1.0
_INTERNAL_REPLICAS_MAX = 3
_DEFAULT_PORT = 9092
_METRICS_PORTS_AFTER = 100
_PORT_MAX = 65_535


def _local_settings(brokers: int) -> dict[str, str]:
    """A local cluster notices a crash within seconds, and its internal topics have as many replicas as it has brokers
    for."""
    replicas = min(_INTERNAL_REPLICAS_MAX, brokers)
    return {
        "zookeeper.session.timeout.ms": "6000",
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(min(2, replicas)),
    }


def _metrics_settings(port: int) -> dict[str, str]:
    return {} if port > _PORT_MAX or port_is_taken(port) else {"odradek.metrics.port": str(port)}


def _freed(port: int) -> bool:
    """Whether nobody listens there; a process that was just killed gets a moment to let go."""
    deadline = time.monotonic() + _PORT_SECONDS_MAX
    while port_is_taken(port):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
    return True


class LocalBroker:
    def __init__(self, directory: Path, broker_id: int, links: LocalLinks) -> None:
        self.id = broker_id
        self._links = links
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

    @property
    def is_linked(self) -> bool:
        """Whether it can be cut off."""
        return is_linked(self._properties())

    def configure(
        self,
        zookeeper: str,
        port: int | None,
        defaults: Mapping[str, str],
        given: Mapping[str, str],
        *,
        linked: bool = False,
    ) -> None:
        """Writes server.properties; of an earlier one everything stays that isn't given anew."""
        properties = self._configured(zookeeper, port, defaults, given)
        if linked:
            properties = self._links.linked(self.id, properties)
        self._directory.mkdir(parents=True, exist_ok=True)
        self._properties_file.write_text(format_properties(properties))

    def is_configured(self, zookeeper: str | None, port: int | None, given: Mapping[str, str]) -> bool:
        """Whether it has all that is given already."""
        known = self._links.unlinked(self._properties())
        wanted = self._configured(zookeeper or known["zookeeper.connect"], port, {}, given)
        return wanted == known

    def _configured(
        self, zookeeper: str, port: int | None, defaults: Mapping[str, str], given: Mapping[str, str]
    ) -> dict[str, str]:
        earlier = self._links.unlinked(self._properties()) if self._properties_file.exists() else {}
        properties = {
            "broker.id": str(self.id),
            "listeners": f"PLAINTEXT://127.0.0.1:{_DEFAULT_PORT + self.id}",
            "log.dirs": str(self._directory / "logs"),
            **defaults,
            **earlier,
            "zookeeper.connect": zookeeper,
        }
        if port is not None:
            properties["listeners"] = f"PLAINTEXT://127.0.0.1:{port}"
        return {**properties, **given}

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
        while not serves(self.address):
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
        self.console = LocalConsole(self.data)
        self.links = LocalLinks(self.data)

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

    def start(
        self,
        zookeeper: str | None,
        port: int | None,
        settings: Mapping[str, str],
        brokers: int | None = None,
        *,
        metrics: bool = False,
        lab: bool = False,
    ) -> None:
        """ZooKeeper, unless one is given, then the brokers, on consecutive ports; returns when all of them serve.

        Without a number: as many as there were. Those that run already stay as they are. `metrics`: new ones serve
        them, at their port + 100. `lab`: brokers can be cut off, unless some run that can't.
        """
        known = {broker.id for broker in self.brokers}
        count = max(brokers or 1, len(known))
        wanted = [self._broker(broker_id) for broker_id in range(count)]
        first = self._first_port() if port is None else port
        ports = {broker.id: None if first is None else first + broker.id for broker in wanted}
        for broker in wanted:
            if broker.pid is not None and not broker.is_configured(zookeeper, port and ports[broker.id], settings):
                raise FatalError(
                    f"broker {broker.id} of {self.data} runs already and keeps its configuration: to change it, stop "
                    f"it first with: odradek down --data {self.data}"
                )
        resting = [broker for broker in wanted if broker.pid is None]
        if resting and zookeeper is None:
            self.zookeeper.start()
            zookeeper = self.zookeeper.connect
        # Either all can be cut off or none: those who can talk to each other at another listener than those who can't.
        running = [broker for broker in wanted if broker.pid is not None]
        linked = running[0].is_linked if running else lab
        if resting and linked:
            self.links.plan(zookeeper or "", [broker.id for broker in resting])
            self.links.start()
        for broker in resting:
            given_port = ports[broker.id] if port is not None or broker.id not in known else None
            defaults = _local_settings(count)
            if metrics and broker.id not in known:
                defaults |= _metrics_settings((given_port or _DEFAULT_PORT + broker.id) + _METRICS_PORTS_AFTER)
            broker.configure(zookeeper or "", given_port, defaults, settings, linked=linked)
            broker.start()
        for broker in wanted:
            broker.await_serving()

    def _first_port(self) -> int | None:
        known = self.brokers
        return known[0].address[1] - known[0].id if known else None

    def start_broker(self, broker_id: int) -> LocalBroker:
        """One broker again, with the configuration that it has."""
        broker = self.broker(broker_id)
        if self.zookeeper.exists:
            self.zookeeper.start()
        if broker.is_linked:
            self.links.start()
        broker.start()
        broker.await_serving()
        return broker

    def cut(self, broker_id: int, whom: Iterable[CutFrom]) -> None:
        if not self.broker(broker_id).is_linked:
            raise FatalError(
                f"broker {broker_id} reaches the others directly, so nothing can be cut: stop the cluster and start it "
                "with: odradek up --lab"
            )
        self.links.cut(broker_id, whom)

    def heal(self, broker_id: int) -> None:
        if broker_id not in self.links.cuts:
            raise FatalError(f"broker {broker_id} is not cut off")
        self.links.heal(broker_id)

    def stop(self) -> bool:
        """Brokers before ZooKeeper, one after the other: each hands its partitions to those that are left. Whether
        anything had been running."""
        self.console.stop()
        stopped = [broker.stop() for broker in self.brokers]
        self.links.stop()
        return self.zookeeper.stop() or any(stopped)

    def _broker(self, broker_id: int) -> LocalBroker:
        return LocalBroker(self.data / f"broker-{broker_id}", broker_id, self.links)


def serves(address: tuple[str, int]) -> bool:
    """Whether a Metadata request is answered with at least one broker: then the broker knows its cluster."""
    correlation_id = 7
    request = struct.pack(">hhihi", 3, 1, correlation_id, -1, 0)
    try:
        with socket.create_connection(address, timeout=2) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            size, answered_id, brokers = struct.unpack(">iii", connection.recv(12, socket.MSG_WAITALL))
            # to the end, since closing on unread bytes would look like a broken connection in the broker's log
            connection.recv(min(max(size - 8, 0), 1 << 16), socket.MSG_WAITALL)
    except (OSError, struct.error):
        return False
    return bool(answered_id == correlation_id and brokers > 0)
