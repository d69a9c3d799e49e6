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
from typing import TYPE_CHECKING

from odradek.base.errors import FatalError
from odradek.local.owned_process import OwnedProcess
from odradek.local.ready_listener import ReadyListener

if TYPE_CHECKING:
    from odradek.client.client_security import ClientSecurity

START_SECONDS_MAX = 60.0
_STOP_SECONDS_MAX = 60.0
_CONTACT_TIMEOUT_MS = 2000
_POLL_SECONDS = 0.02
_POLL_SECONDS_OF_NOTIFYING = 0.2

Launch = Callable[[Path], Sequence[str]]
"""The command that runs a server from its configuration file."""


def _notifies(command: Sequence[str]) -> bool:
    """Return whether the process is one of ours, which send READY=1 as to a service manager."""
    return list(command[:2]) == [sys.executable, "-m"] and command[2].partition(".")[0] == "odradek"


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
        self._ready: ReadyListener | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid()

    def start(self) -> None:
        """Start the process, which must not run; `await_serving` returns when it is ready."""
        self._log_position = self.log_file.stat().st_size if self.log_file.exists() else 0
        command = self._launch(self.config)
        environment = dict(self._environment or {})
        if _notifies(command):
            self._ready = ReadyListener()
            environment |= {"NOTIFY_SOCKET": self._ready.address}
        self._process.spawn(command, self.log_file, environment)

    def await_serving(
        self, serves: Callable[[], bool], seconds_max: float = START_SECONDS_MAX, poll_seconds: float | None = None
    ) -> None:
        """Wait until `serves` is true. Our own servers notify when they are ready; others are polled."""
        deadline = time.monotonic() + seconds_max
        while not serves():
            if self.pid is None:
                raise FatalError(f"{self._name} did not start: {self.last_words()} (see {self.log_file})")
            if time.monotonic() >= deadline:
                raise FatalError(f"{self._name} does not answer after {seconds_max:.0f} s: {self.log_file}")
            if self._ready is None:
                time.sleep(poll_seconds or _POLL_SECONDS)
            else:
                self._ready.wait(poll_seconds or _POLL_SECONDS_OF_NOTIFYING)
        self._ready = None

    def stop(self, patience_seconds: float = _STOP_SECONDS_MAX) -> bool:
        """Ask it to stop, and kill it when that takes too long. Whether it had been running."""
        return self._process.stop(patience_seconds)

    def kill(self) -> bool:
        """Kill the process. Return whether it was running."""
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


def serves(address: tuple[str, int], security: "ClientSecurity | None" = None) -> bool:
    """Return whether a Metadata request is answered with at least one broker: then the broker knows its cluster."""
    # Loaded while the processes that were started load their own modules.
    from odradek.client.broker_client import BrokerClient, ConnectionFailed
    from odradek.protocol.messages.metadata import MetadataRequest

    try:
        with BrokerClient(*address, timeout_ms=_CONTACT_TIMEOUT_MS, security=security) as client:
            return bool(client.send(MetadataRequest(topics=[])).brokers)
    except ConnectionFailed:
        return False
