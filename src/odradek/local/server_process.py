"""A server that runs in the background from its configuration file: a broker of either kind, or ZooKeeper.

The one way to start a server of a local cluster: `odradek up`, the pytest plugin, the demo, the laboratories, the
benchmark and the tests differ in the configuration, and in the question that a server must answer before it counts.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from odradek.base.errors import FatalError
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.client.client_security import ClientSecurity
from odradek.local.owned_process import OwnedProcess
from odradek.protocol.messages.metadata import MetadataRequest

START_SECONDS_MAX = 60.0
_STOP_SECONDS_MAX = 60.0
_CONTACT_TIMEOUT_MS = 2000

Launch = Callable[[Path], Sequence[str]]
"""The command that runs a server from its configuration file."""


def odradek_command(properties: Path) -> Sequence[str]:
    return [sys.executable, "-m", "odradek", "broker", str(properties)]


class ServerProcess:
    def __init__(
        self,
        name: str,
        config: Path,
        log_file: Path,
        launch: Launch = odradek_command,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`name` is for error messages. The process is found again by a pid file beside the log."""
        self.config = config
        self.log_file = log_file
        self._name = name
        self._launch = launch
        self._environment = environment
        self._process = OwnedProcess(log_file.with_suffix(".pid"), config)
        self._log_position = 0

    @property
    def pid(self) -> int | None:
        return self._process.pid()

    def start(self) -> None:
        """Start the process, which must not run; `await_serving` returns when it is ready."""
        self._log_position = self.log_file.stat().st_size if self.log_file.exists() else 0
        self._process.spawn(self._launch(self.config), self.log_file, self._environment)

    def await_serving(
        self, serves: Callable[[], bool], seconds_max: float = START_SECONDS_MAX, poll_seconds: float = 0.02
    ) -> None:
        deadline = time.monotonic() + seconds_max
        while not serves():
            if self.pid is None:
                raise FatalError(f"{self._name} did not start: {self.last_words()} (see {self.log_file})")
            if time.monotonic() >= deadline:
                raise FatalError(f"{self._name} does not answer after {seconds_max:.0f} s: {self.log_file}")
            time.sleep(poll_seconds)

    def stop(self, patience_seconds: float = _STOP_SECONDS_MAX) -> bool:
        """Ask it to stop, and kill it when that takes too long. Whether it had been running."""
        return self._process.stop(patience_seconds)

    def kill(self) -> bool:
        """End it as a crash would. Whether it had been running."""
        return self._process.kill()

    def exit_code(self, within_s: float = 30) -> int:
        """Wait for the end of a process that this program started, and return its status."""
        return self._process.exit_code(within_s)

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if (pid := self.pid) is not None:
            os.kill(pid, number)

    def last_words(self) -> str:
        """The line in which the server says why it stopped, else its last one; of this start, not of earlier ones."""
        written = self.log_file.read_bytes()[self._log_position :] if self.log_file.exists() else b""
        lines = written.decode(errors="replace").strip().splitlines()
        reasons = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
        return (reasons or lines or ["it left no message"])[-1]


def serves(address: tuple[str, int], security: ClientSecurity | None = None) -> bool:
    """Return whether a Metadata request is answered with at least one broker: then the broker knows its cluster."""
    try:
        with BrokerClient(*address, timeout_ms=_CONTACT_TIMEOUT_MS, security=security) as client:
            return bool(client.send(MetadataRequest(topics=[])).brokers)
    except ConnectionFailed:
        return False
