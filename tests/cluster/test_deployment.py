"""The container's start script, run without a container; its health check; the messages that systemd waits for."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

from odradek.local.server_process import serves
from odradek.local.zookeeper_server import free_port

ROOT = Path(__file__).parents[2]


def health_check(metrics_port: int) -> int:
    found = re.search(r"^HEALTHCHECK .*?CMD (\[.*?\])$", (ROOT / "Containerfile").read_text(), re.DOTALL | re.MULTILINE)
    assert found
    _, *arguments = json.loads(found[1].replace(":9192/", f":{metrics_port}/"))
    return subprocess.run([sys.executable, *arguments], capture_output=True, timeout=60, check=False).returncode


def test_a_broker_as_a_container_starts_it(tmp_path: Path) -> None:
    port, metrics_port = free_port(), free_port()
    settings = f"listeners=PLAINTEXT://127.0.0.1:{port}\nodradek.metrics.port={metrics_port}\n"
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "NOTIFY_SOCKET": str(tmp_path / "notify"),
        "ODRADEK_DATA": str(tmp_path / "data"),
        "ODRADEK_COORDINATION_PORT": str(free_port()),
        "ODRADEK_ADVERTISED": f"127.0.0.1:{port}",
        "ODRADEK_SETTINGS": settings,
    }
    assert health_check(metrics_port) != 0
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(environment["NOTIFY_SOCKET"])
        manager.settimeout(60)
        broker = subprocess.Popen([ROOT / "deploy" / "container-start"], env=environment, start_new_session=True)
        try:
            assert manager.recv(1000) == b"READY=1\nSTATUS=broker 0 serves"
            assert serves(("127.0.0.1", port))
            assert health_check(metrics_port) == 0
            broker.terminate()
            assert manager.recv(1000) == b"STOPPING=1\nSTATUS=controlled shutdown of broker 0"
            assert broker.wait(60) == 0
        finally:
            os.killpg(broker.pid, signal.SIGKILL)  # the coordination server, which ends with its container


def test_arguments_are_a_command_of_odradek() -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [ROOT / "deploy" / "container-start", "--version"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith("odradek ")
