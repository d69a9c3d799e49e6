"""Brokers that tests fork are processes like those that a command starts: seen from outside there is no difference."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

import forked_brokers
from odradek.local import owned_process
from odradek.local.owned_process import OwnedProcess
from odradek.local.server_process import odradek_command

from .own_broker import OwnBroker, running


@pytest.fixture
def start_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    starts = {"fork": forked_brokers.start_process, "command": forked_brokers._ordinary_start}
    monkeypatch.setattr(owned_process, "start_process", starts[request.param])
    return str(request.param)


both = pytest.mark.parametrize("start_by", ["fork", "command"], indirect=True)


@both
def test_a_broker_in_the_system(start_by: str, tmp_path: Path, zookeeper: str) -> None:
    with running(OwnBroker(tmp_path, zookeeper)) as broker:
        process = Path(f"/proc/{broker.pid}")
        arguments = (process / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        assert arguments == [os.fsencode(word) for word in odradek_command(tmp_path / "server.properties")]
        assert os.getsid(broker.pid) == broker.pid
        assert os.readlink(process / "cwd") == os.getcwd()
        assert os.readlink(process / "fd/0") == os.devnull
        assert {os.readlink(process / f"fd/{number}") for number in (1, 2)} == {str(tmp_path / "broker.log")}
        again = OwnedProcess(tmp_path / "broker.pid", tmp_path / "server.properties")
        assert again.pid() == broker.pid
        assert broker.stop() == 0
        assert again.pid() is None


@both
def test_its_end_is_told(start_by: str, tmp_path: Path, zookeeper: str) -> None:
    broker = OwnBroker(tmp_path, zookeeper)
    broker.start()
    with pytest.raises(subprocess.TimeoutExpired):
        broker.exit_code(within_s=0.01)
    broker.kill()
    assert broker.exit_code() == -signal.SIGKILL


@both
def test_it_reads_the_environment_of_its_own_start(
    start_by: str, tmp_path: Path, zookeeper: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_OPTS", "-Dzookeeper.sasl.client=true -Djava.security.auth.login.config=/nowhere")
    monkeypatch.setenv("ODRADEK_PURE", "1")
    broker = OwnBroker(tmp_path, zookeeper)
    with pytest.raises(AssertionError, match="the broker is gone"):
        broker.start()
    assert broker.exit_code() == 1
    assert "implementation=python" in broker.log
    assert "which KAFKA_OPTS names" in broker.log


def test_a_broker_with_code_of_its_own_is_started_by_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `sitecustomize`, as planted faults have, runs when an interpreter starts."""
    monkeypatch.setattr(owned_process, "start_process", forked_brokers.start_process)
    (tmp_path / "sitecustomize.py").write_text("print('planted', flush=True)\nraise SystemExit(3)\n")
    process = OwnedProcess(tmp_path / "pid", tmp_path / "server.properties")
    command, log = odradek_command(tmp_path / "server.properties"), tmp_path / "log"
    process.spawn(command, log, {"PYTHONPATH": str(tmp_path)})
    process.exit_code(within_s=60)
    assert "planted" in log.read_text()
