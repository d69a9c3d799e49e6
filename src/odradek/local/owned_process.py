"""A background process that is found again by its pid file, also by another run of the program.

The pid alone proves nothing, since the system reuses it: the process is ours only if its command line names the file
that we started it with. The embedded ZooKeeper and the command line's brokers are such processes.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from odradek.local.process_start import process_start

_POLL_SECONDS = 0.02
_LOOK_SECONDS, _LOOKS_MAX = 0.001, 50


class Child(Protocol):
    """A process that this program started."""

    @property
    def pid(self) -> int: ...

    def kill(self) -> None: ...

    def poll(self) -> int | None:
        """Status of the process if it has ended."""

    def wait(self, timeout: float | None = None) -> int:
        """Status of the process once it has ended; subprocess.TimeoutExpired if that takes longer."""


def start_process(command: Sequence[str], log_file: Path, environment: Mapping[str, str]) -> Child:
    """Start a process in a session of its own, so that a Ctrl-C on the terminal doesn't reach it."""
    with log_file.open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment,
        )


class OwnedProcess:
    """`marker` is an argument, an absolute path, that no other process was started with."""

    def __init__(self, pid_file: Path, marker: Path) -> None:
        self._pid_file = pid_file
        self._marker = str(marker)
        self._child: Child | None = None

    def pid(self) -> int | None:
        """The id of the running process; a stale pid file is ignored."""
        # A child of this very program is known without its command line, which is empty for a moment after the start.
        if self._child is not None and self._child.poll() is None:
            return self._child.pid
        try:
            pid = int(self._pid_file.read_text())
            arguments = _arguments(pid)
        except (OSError, ValueError):
            return None
        return pid if self._marker.encode() in arguments else None

    def spawn(self, command: Sequence[str], log_file: Path, environment: Mapping[str, str] | None = None) -> None:
        with _uninterrupted():
            self._child = start_process(command, log_file, {**os.environ, **(environment or {})})
            try:
                self._pid_file.write_text(f"{self._child.pid}\n")
            except OSError:  # a full disk; without the file no later command would find the process
                self._child.kill()
                self._child.wait()
                raise

    def stop(self, patience_seconds: float) -> bool:
        """Stop the process, and kill it if that takes too long. Return whether it was running."""
        return self._end(signal.SIGTERM, patience_seconds)

    def kill(self) -> bool:
        """Ends it as a crash would. Whether it had been running."""
        return self._end(signal.SIGKILL, patience_seconds=10)

    def exit_code(self, within_s: float) -> int:
        """Status of a child of this program, once it has ended; subprocess.TimeoutExpired if that takes longer."""
        if self._child is None:
            raise RuntimeError("this program did not start the process")
        return self._child.wait(within_s)

    def _end(self, how: signal.Signals, patience_seconds: float) -> bool:
        pid = self.pid()
        if pid is not None:
            _signal(pid, how)
            if not self._gone_within(patience_seconds):
                _signal(pid, signal.SIGKILL)
                self._gone_within(10)
            self._pid_file.unlink(missing_ok=True)
        return pid is not None

    def _gone_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.pid() is not None:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back until the pid file is there, without which nothing would find the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda number, frame: came.append(number)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for held in came:
        signal.raise_signal(held)


def _arguments(pid: int) -> list[bytes]:
    """Command line of the process, which is empty for a moment after its start."""
    path, looks = Path(f"/proc/{pid}/cmdline"), _LOOKS_MAX
    while not (line := path.read_bytes()) and looks and process_start(pid) is not None:
        time.sleep(_LOOK_SECONDS)
        looks -= 1
    return line.split(b"\0")


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
