"""The embedded ZooKeeper: Apache ZooKeeper on one machine, for development, demonstrations and tests.

Owns one directory: the data, `zoo.cfg`, the chosen `port`, the pid file and the server's log. Production points
`zookeeper.connect` at an ensemble instead.
"""

import itertools
import random
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

from odradek.base.errors import FatalError
from odradek.local.java import find_java
from odradek.local.server_process import ServerProcess
from odradek.local.zookeeper_jars import zookeeper_classpath

_MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_JVM_OPTIONS = (
    "-Xms16m",
    "-Xmx64m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Dzookeeper.preAllocSize=1024",
    "-Dslf4j.internal.verbosity=ERROR",
)
# A tick of half a second lets sessions of one second live and die quickly; the cap follows the tick by default.
_SETTINGS = """\
tickTime=500
minSessionTimeout=1000
maxSessionTimeout=120000
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=conf,envi,mntr,ruok,srvr,stat
autopurge.snapRetainCount=3
autopurge.purgeInterval=1
"""
_START_SECONDS_MAX = 30.0
_STOP_SECONDS_MAX = 10.0


# Below the range from which the system takes the local ports of outgoing connections: a client that tries to reconnect
# to a stopped server could otherwise be given the server's port, be connected to itself and keep the server out.
_SERVER_PORTS = range(20_000, 32_000)
_drawing = threading.Lock()


def _draws() -> Iterator[int]:
    """Every port once, then all of them again in the same order: a port is given again as late as possible, when
    clients of the server that had it have long gone."""
    yield from itertools.cycle(random.sample(_SERVER_PORTS, len(_SERVER_PORTS)))


_drawn = _draws()


def free_port() -> int:
    """Return a free port that this process was not given before: an earlier one may be bound later."""
    with _drawing:
        return next(port for port in _drawn if not port_is_taken(port))


def free_ports(*after: int) -> int:
    """Return a free port; the ports that come so many after it are free as well."""
    while True:
        first = free_port()
        if not any(port_is_taken(first + more) for more in after):
            return first


def port_is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
        return False


class EmbeddedZooKeeper:
    """One server; with `settings` of its own, such as the members of an ensemble, it may be one of several."""

    def __init__(self, directory: Path, host: str = "127.0.0.1", settings: str = "") -> None:
        self._directory = directory.resolve()
        self._host = host
        self._settings = settings
        self._config = self._directory / "zoo.cfg"
        self._port_file = self._directory / "port"
        log = self._directory / "zookeeper.log"
        self._process = ServerProcess("ZooKeeper", self._config, log, lambda config: [*self._command(), str(config)])

    @property
    def connect(self) -> str:
        """Value of `zookeeper.connect` for brokers."""
        return f"{self._host}:{self._port_file.read_text().strip()}"

    @property
    def exists(self) -> bool:
        """Return whether a server was ever started in this directory."""
        return self._config.exists()

    @property
    def data_dir(self) -> Path:
        """Snapshots and logs of transactions."""
        return self._directory / "data"

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def start(self) -> None:
        """Starts the server, unless it runs already, and waits until it serves. Its port stays the same for ever."""
        self.spawn()
        self.await_serving()

    def spawn(self) -> None:
        """Starts the server without waiting: one of an ensemble serves only when enough others are there."""
        if self.pid is None:
            self._command()  # its absence is an error before anything is written
            self._directory.mkdir(parents=True, exist_ok=True)
            port = self._choose_port()
            own = f"clientPortAddress={self._host}\nclientPort={port}\ndataDir={self.data_dir}\n"
            self._config.write_text(_SETTINGS + own + self._settings)
            self._process.start()

    def _command(self) -> list[str]:
        """Command line of the server without its last argument, the configuration."""
        return [str(find_java()), *_JVM_OPTIONS, "-cp", zookeeper_classpath(), _MAIN_CLASS]

    def stop(self) -> bool:
        return self._process.stop(_STOP_SECONDS_MAX)

    def kill(self) -> bool:
        return self._process.kill()

    def last_words(self) -> str:
        """Return the line in which the server says why it stopped."""
        return f"{self._process.last_words()} (see {self._process.log_file})"

    def _choose_port(self) -> int:
        if not self._port_file.exists():
            self._port_file.write_text(f"{free_port()}\n")
        port = int(self._port_file.read_text())
        if port_is_taken(port):
            raise FatalError(
                f"port {port}, on which the ZooKeeper of {self._directory} listens, is taken by another process: "
                f"stop that process, or delete {self._port_file} to have another port chosen"
            )
        return port

    def await_serving(self) -> None:
        try:
            self._process.await_serving(lambda: self.mode() is not None, _START_SECONDS_MAX)
        except FatalError:
            self._process.kill()
            raise

    def mode(self) -> str | None:
        """standalone, leader or follower; None while it doesn't serve. (`ruok` would say imok before that.)"""
        return zookeeper_mode(self.connect)


def zookeeper_mode(address: str) -> str | None:
    """standalone, leader or follower; None from a server that doesn't serve."""
    try:
        answer = four_letter_word(address, "srvr", timeout_s=1)
    except OSError:
        return None
    return next((line.partition(": ")[2] for line in answer.splitlines() if line.startswith("Mode: ")), None)


def four_letter_word(address: str, word: str, timeout_s: float) -> str:
    """Return the answer of the ZooKeeper at `HOST:PORT` to one of its monitoring commands."""
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), timeout=timeout_s) as connection:
        connection.sendall(word.encode())
        return b"".join(iter(lambda: connection.recv(1 << 16), b"")).decode(errors="replace")
