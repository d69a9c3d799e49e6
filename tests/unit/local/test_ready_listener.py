"""READY=1 from a process of ours: the wait ends at once, and without it in time."""

import sys
from pathlib import Path

import pytest

from odradek.base.errors import FatalError
from odradek.base.service_manager import notify
from odradek.local.ready_listener import ReadyListener
from odradek.local.server_process import ServerProcess, odradek_command


def test_a_message_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    listener, other = ReadyListener(), ReadyListener()
    monkeypatch.setenv("NOTIFY_SOCKET", listener.address)
    assert not listener.wait(0.001)
    assert notify("READY=1")
    assert listener.wait(60)
    assert not other.wait(0.001)


def test_without_the_listener_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", ReadyListener().address)
    assert not notify("READY=1")


def test_a_server_of_ours_tells_when_to_ask(tmp_path: Path) -> None:
    """The second question follows the message, not the interval of a minute."""
    script = tmp_path / "odradek.py"
    script.write_text("from odradek_notify import notify\nnotify()\nimport time\ntime.sleep(60)\n")
    (tmp_path / "odradek_notify.py").write_text(
        "import os, socket\n"
        "def notify():\n"
        "    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:\n"
        "        s.sendto(b'READY=1', chr(0) + os.environ['NOTIFY_SOCKET'][1:])\n"
    )
    environment = {"PYTHONPATH": str(tmp_path)}
    server = ServerProcess("it", tmp_path / "config", tmp_path / "log", _other_module, environment)
    asked = []

    def serves() -> bool:
        asked.append(server.pid)
        return len(asked) > 1

    server.start()
    try:
        server.await_serving(serves, poll_seconds=60)
    finally:
        server.kill()
    assert len(asked) == 2


def _other_module(config: Path) -> list[str]:
    return [sys.executable, "-m", "odradek", str(config)]


def test_a_server_that_ends_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text("broker.id=nonsense\n")
    broker = ServerProcess("broker 0", config, tmp_path / "log", odradek_command)
    broker.start()
    with pytest.raises(FatalError, match=r"broker 0 did not start: Invalid value nonsense"):
        broker.await_serving(lambda: False)
