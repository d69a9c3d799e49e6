"""A broker one of whose essential threads fails stops as a whole: it is never half alive."""

import socket
import subprocess
import sys
from pathlib import Path

from odradek.local.zookeeper_server import free_port

BROKER = """
import sys
from pathlib import Path
from odradek.broker import main
from odradek.broker.network.acceptor import Acceptor

let_go, fault = Acceptor._let_go, Path(sys.argv[2])

def planted(acceptor):
    if fault.exists():
        raise LookupError("planted")
    let_go(acceptor)

Acceptor._let_go = planted
sys.exit(main.run(Path(sys.argv[1]), {}))
"""


def test_the_broker_stops_when_its_acceptor_fails(zookeeper: str, tmp_path: Path) -> None:
    port, fault, properties = free_port(), tmp_path / "fault", tmp_path / "server.properties"
    properties.write_text(
        f"broker.id=0\nlisteners=PLAINTEXT://127.0.0.1:{port}\nlog.dirs={tmp_path}/logs\n"
        f"zookeeper.connect={zookeeper}/thread-failure\n"
    )
    command = [sys.executable, "-c", BROKER, str(properties), str(fault)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as broker:
        try:
            assert broker.stdout is not None
            assert any("[KafkaServer id=0] started" in line for line in broker.stdout)
            fault.touch()
            socket.create_connection(("127.0.0.1", port)).close()
            said, _ = broker.communicate(timeout=60)
        finally:
            broker.kill()
    assert broker.returncode == 1
    assert "thread failed" in said
    assert "the thread acceptor-PLAINTEXT failed: LookupError: planted" in said
