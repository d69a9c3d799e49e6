"""`odradek up`, `down`, `kill` and `start`, as a person at a terminal uses them."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.local.cluster_processes import LocalCluster
from odradek.local.server_process import serves
from odradek.local.zookeeper_server import free_port


def _odradek(*arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "odradek", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "data"
    yield directory
    LocalCluster(directory).stop()


def test_up_and_down_and_up_again(data: Path) -> None:
    """With settings that are kept; those that are ignored are told on the terminal, and can be taken back."""
    port = free_port()
    where = ("up", "--data", str(data), "--detach", "--no-console")
    ignored = ("--set", "log.retention.hour=1", "--set", "background.threads=3")
    up = _odradek(*where, "--port", str(port), "--set", "num.network.threads=2", *ignored)
    assert (up.returncode, up.stdout) == (0, f"bootstrap.servers=127.0.0.1:{port}\n"), up.stderr
    told = up.stderr.splitlines()
    assert told[0] == (
        "warning: unknown configuration key log.retention.hour is ignored; did you mean log.retention.hours?"
    )
    assert told[1].startswith("warning: background.threads has no effect: background tasks share one thread")
    assert serves(("127.0.0.1", port))
    assert {path.name for path in data.iterdir()} == {"zookeeper", "broker-0"}
    kept = {path.name for path in (data / "broker-0").iterdir()}
    assert {"server.properties", "broker.pid", "broker.log", "logs"} <= kept
    properties = data / "broker-0" / "server.properties"
    assert {"num.network.threads=2", "log.retention.hour=1"} <= set(properties.read_text().splitlines())
    assert "[KafkaServer id=0] started" in (data / "broker-0" / "broker.log").read_text()
    zookeeper = LocalCluster(data).zookeeper.connect

    _refuse_changes_of_what_runs(*where)
    assert serves(("127.0.0.1", port)), "what ran before goes on"

    link = data.with_name("link")
    link.symlink_to(data)
    assert _odradek("stop", "--data", str(link), "0").stderr == "broker 0 stopped\n"
    assert _odradek("start", "--data", str(data / ".." / "link"), "0").returncode == 0
    same = data / ".." / data.name
    down = _odradek("down", "--data", str(same))
    assert down.returncode == 0
    assert down.stderr == f"stopped 1 broker; the data stays in {same}, resume with: odradek up --data {same}\n"
    assert not LocalCluster(data).running
    assert not serves(("127.0.0.1", port))

    both = _odradek(*where, "--unset", "log.retention.hour", "--set", "log.retention.hour=2")
    assert both.returncode == 2
    assert "log.retention.hour can't be set and unset in one command" in both.stderr
    again = _odradek(*where, "--unset", "log.retention.hour", "--unset", "no.such.key")
    assert (again.returncode, again.stdout) == (0, f"bootstrap.servers=127.0.0.1:{port}\n"), again.stderr
    assert "warning: no.such.key was not set\n" in again.stderr
    assert "unknown configuration key" not in again.stderr
    assert LocalCluster(data).zookeeper.connect == zookeeper
    assert "num.network.threads=2\n" in properties.read_text()
    assert "log.retention.hour=" not in properties.read_text()

    assert LocalCluster(data).broker(0).kill()
    assert _odradek("down", "--data", str(data)).stderr.startswith("stopped the coordination server; the data stays in")


def _refuse_changes_of_what_runs(*where: str) -> None:
    other_port = _odradek(*where, "--port", "1234")
    assert other_port.returncode == 1
    assert "broker 0 of" in other_port.stderr
    unset = _odradek(*where, "--unset", "log.retention.hour")
    assert unset.returncode == 1
    assert "is already running and keeps its configuration" in unset.stderr


def test_a_killed_broker_is_told_of_and_started_again(data: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "odradek", "up", "--data", str(data), "--port", str(port), "--no-console"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as up:
        assert up.stdout is not None
        assert up.stderr is not None
        assert up.stdout.readline() == f"bootstrap.servers=127.0.0.1:{port}\n"
        pid = LocalCluster(data).broker(0).pid
        assert _odradek("kill", "--data", str(data), "0").returncode == 0
        assert not serves(("127.0.0.1", port))
        killed_again = _odradek("kill", "--data", str(data), "0")
        assert killed_again.returncode == 1
        assert "broker 0 is not running; start it with: odradek start" in killed_again.stderr
        assert any("broker 0 has stopped" in line for line in up.stderr)
        assert _odradek("start", "--data", str(data), "0").returncode == 0
        assert serves(("127.0.0.1", port))
        assert LocalCluster(data).broker(0).pid != pid
        os.kill(up.pid, signal.SIGINT)
        _, errors = up.communicate(timeout=60)
    assert up.returncode == 0
    assert "Traceback" not in errors
    assert not LocalCluster(data).running


def test_starts_that_fail_leave_nothing_behind(data: Path) -> None:
    port = free_port()
    common = ("up", "--data", str(data), "--port", str(port), "--detach", "--no-console")
    refused = _odradek(*common, "--set", "num.io.threads=none")
    assert refused.returncode == 2
    assert refused.stderr == (
        "error: --set: Invalid value none for configuration num.io.threads: not a number of type INT "
        "(odradek up --help)\n"
    )
    assert not data.exists(), "nothing was written"

    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        taken = _odradek(*common)
    assert taken.returncode == 1
    assert taken.stderr == (
        f"error: port {port} of broker 0 is taken by another process: stop that process, "
        "or choose another port with: odradek up --port PORT\n"
    )
    assert not LocalCluster(data).running

    failed = _odradek(*common, "--set", "log.dirs=/proc/nowhere")  # valid: only this machine shows that it can't be
    assert failed.returncode == 1
    assert "/proc/nowhere" in failed.stderr
    assert not LocalCluster(data).running

    again = _odradek(*common)
    assert again.returncode == 0, again.stderr
    written = (data / "broker-0" / "server.properties").read_text()
    assert "nowhere" not in written
    assert "num.io.threads" not in written
