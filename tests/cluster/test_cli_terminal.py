"""The command line on a terminal: colours there and nowhere else, pictures that replace each other, a clean Ctrl-C."""

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

ODRADEK = [sys.executable, "-m", "odradek"]
LIMIT_S = 60.0


class Terminal:
    """A command on a pseudo-terminal, and what it has shown so far."""

    def __init__(self, process: "subprocess.Popen[bytes]", fd: int) -> None:
        self.process = process
        self.shown = ""
        self._fd = fd

    def until(self, text: str) -> None:
        deadline = time.monotonic() + LIMIT_S
        while text not in self.shown:
            assert time.monotonic() < deadline, self.shown
            if not self._read():
                break
        assert text in self.shown

    def to_its_end(self) -> int:
        while self._read():
            pass
        return self.process.wait(LIMIT_S)

    def press_ctrl_c(self) -> None:
        os.write(self._fd, b"\x03")

    def _read(self) -> bool:
        try:
            data = os.read(self._fd, 65536)
        except OSError:  # the other side is closed
            return False
        self.shown += data.decode(errors="replace")
        return bool(data)


@contextmanager
def on_a_terminal(*arguments: str, bootstrap: str) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "ODRADEK_BOOTSTRAP_SERVER": bootstrap, "COLUMNS": "120"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [*ODRADEK, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _take_terminal() -> None:
    """Ctrl-C reaches whoever the terminal belongs to."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_colours_on_a_terminal_only(bootstrap: str) -> None:
    with on_a_terminal("cluster", bootstrap=bootstrap) as terminal:
        assert terminal.to_its_end() == 0
        assert "\x1b[32m" in terminal.shown  # healthy
    piped = subprocess.run(
        [*ODRADEK, "cluster", "-b", bootstrap], capture_output=True, text=True, timeout=LIMIT_S, check=True
    )
    assert "healthy" in piped.stdout
    assert "\x1b" not in piped.stdout + piped.stderr


@pytest.mark.parametrize("command", [("brokers", "--watch", "0.2"), ("topics", "list", "--watch", "0.2")])
def test_a_watched_picture_is_replaced_until_ctrl_c(bootstrap: str, command: tuple[str, ...]) -> None:
    with on_a_terminal(*command, bootstrap=bootstrap) as terminal:
        terminal.until("Ctrl-C ends")
        terminal.shown = ""
        terminal.until("\x1b[H\x1b[2J")
        terminal.press_ctrl_c()
        assert terminal.to_its_end() == 130
        assert "Traceback" not in terminal.shown
        assert "error" not in terminal.shown


def test_an_unreachable_cluster_is_told_in_one_line() -> None:
    told = subprocess.run(
        [*ODRADEK, "topics", "list", "-b", "127.0.0.1:1"], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert (told.returncode, told.stdout, told.stderr.count("\n")) == (1, "", 1)
    assert "no broker answers at 127.0.0.1:1" in told.stderr
