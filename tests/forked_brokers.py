"""Brokers of tests, forked from a process that has loaded their modules: the hundreds that a test run starts cost it
more time in imports than in everything else they do.

A forked broker is a process of its own like any other: pid, session, environment, directory, log file, exit status.
Brokers that the command line starts (`odradek up`, and so the tests of `up` and of the documents) are not forked, and
with ODRADEK_TEST_STARTS=command none is.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from socket import AF_UNIX, SOCK_SEQPACKET, socket

from odradek.local import owned_process

_VARIABLE = "ODRADEK_TEST_STARTS"
_COMMAND = [sys.executable, "-m", "odradek", "broker"]
_READ_AT_START = ("PYTHON", "ODRADEK_PURE", "MALLOC_", "LD_", "LC_", "LANG", "TZ", "OPENSSL_", "SSL_")
"""Variables that the interpreter, the C library and module-level code read: a process with others is forked from a
server of its own."""
_COMMAND_LINE_BYTES_MAX = 4096


class ForkedProcess:
    """A broker; the server is its parent and tells its status."""

    def __init__(self, connection: socket) -> None:
        self._connection = connection
        self._reading = threading.Lock()
        self._status: int | None = None
        self.pid = int(connection.recv(32))

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def poll(self) -> int | None:
        return self._status_within(0)

    def wait(self, timeout: float | None = None) -> int:
        status = self._status_within(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(f"broker {self.pid}", timeout or 0)
        return status

    def _status_within(self, seconds: float | None) -> int | None:
        with self._reading:
            if self._status is None:
                self._connection.settimeout(seconds)
                try:
                    self._status = int(self._connection.recv(32))
                except (BlockingIOError, TimeoutError):
                    return None
                self._connection.close()
            return self._status


class _Server:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._address = f"odradek-fork-{os.getpid()}-{id(self)}"
        script = str(Path(__file__).with_name("fork_server.py"))
        self._process = subprocess.Popen(
            [sys.executable, "-P", script, self._address, "x" * _COMMAND_LINE_BYTES_MAX],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env=environment,
        )
        atexit.register(self._close)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"listening\n"

    def start(self, command: Sequence[str], log_file: Path, environment: Mapping[str, str]) -> ForkedProcess:
        connection = socket(AF_UNIX, SOCK_SEQPACKET)
        connection.connect(f"\0{self._address}")
        arguments = command[_COMMAND.index("odradek") + 1 :]
        request = [arguments, command, str(log_file.absolute()), os.getcwd(), dict(environment)]
        connection.send(json.dumps(request).encode())
        return ForkedProcess(connection)

    def _close(self) -> None:
        self._process.communicate()


_servers: dict[frozenset[tuple[str, str]], _Server] = {}
_choosing = threading.Lock()
_ordinary_start = owned_process.start_process


def start_process(command: Sequence[str], log_file: Path, environment: Mapping[str, str]) -> owned_process.Child:
    """Fork a broker; start any other process by its command, and a broker with code of its own (`sitecustomize` of
    planted faults), which may read any variable."""
    has_own_code = environment.get("PYTHONPATH") != os.environ.get("PYTHONPATH")
    if has_own_code or list(command[: len(_COMMAND)]) != _COMMAND:
        return _ordinary_start(command, log_file, environment)
    read = frozenset((name, text) for name, text in environment.items() if name.startswith(_READ_AT_START))
    with _choosing:
        if read not in _servers:
            _servers[read] = _Server(environment)
        server = _servers[read]
    return server.start(command, log_file, environment)


def fork_brokers() -> None:
    """Fork every broker that this process starts from now on."""
    if os.environ.get(_VARIABLE) != "command":
        owned_process.start_process = start_process
