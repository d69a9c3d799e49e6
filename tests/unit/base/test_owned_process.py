import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from odradek.local import owned_process
from odradek.local.owned_process import OwnedProcess

STAY = "import time; time.sleep(60)"
STAY_DEAF = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
)


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "server.properties"


@pytest.fixture
def process(tmp_path: Path, marker: Path) -> OwnedProcess:
    return OwnedProcess(tmp_path / "pid", marker)


def _start(process: OwnedProcess, marker: Path, code: str = STAY) -> None:
    process.spawn([sys.executable, "-c", code, str(marker)], marker.parent / "log")


def test_it_is_found_again_by_its_pid_file(process: OwnedProcess, tmp_path: Path, marker: Path) -> None:
    assert process.pid() is None
    _start(process, marker)
    pid = process.pid()
    time.sleep(0.1)
    again = OwnedProcess(tmp_path / "pid", marker)
    assert again.pid() == pid is not None
    assert process.stop(patience_seconds=5)
    assert again.pid() is None
    assert not (tmp_path / "pid").exists()
    assert not again.stop(patience_seconds=5)


def test_a_stale_pid_file_that_names_a_strangers_process(process: OwnedProcess, tmp_path: Path) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", STAY])
    try:
        (tmp_path / "pid").write_text(str(stranger.pid))
        assert process.pid() is None
        assert not process.kill()
        assert stranger.poll() is None
        assert (tmp_path / "pid").exists()  # it may be ours after all, under another name of the directory
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("content", ["", "nonsense", "999999999"])
def test_a_pid_file_of_nobody(process: OwnedProcess, tmp_path: Path, content: str) -> None:
    (tmp_path / "pid").write_text(content)
    assert process.pid() is None


def test_who_does_not_listen_is_killed(process: OwnedProcess, marker: Path) -> None:
    _start(process, marker, STAY_DEAF)
    log = marker.parent / "log"
    while "deaf" not in log.read_text():
        time.sleep(0.02)
    began = time.monotonic()
    assert process.stop(patience_seconds=0.2)
    assert time.monotonic() - began >= 0.2
    assert process.pid() is None


def test_without_a_pid_file_there_is_no_process(tmp_path: Path, marker: Path) -> None:
    """A full disk: what no later command could find must not run."""
    process = OwnedProcess(tmp_path / "no" / "pid", marker)
    with pytest.raises(FileNotFoundError):
        _start(process, marker)
    assert process.pid() is None


def test_an_interrupted_start_is_found_by_its_pid_file(
    process: OwnedProcess, tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordinary = owned_process.start_process

    def interrupted(command: Sequence[str], log_file: Path, environment: Mapping[str, str]) -> owned_process.Child:
        child = ordinary(command, log_file, environment)
        signal.raise_signal(signal.SIGINT)
        return child

    monkeypatch.setattr(owned_process, "start_process", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a test with Spark leaves Spark's own
    try:
        with pytest.raises(KeyboardInterrupt):
            _start(process, marker)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert OwnedProcess(tmp_path / "pid", marker).kill()
