"""Clients that reset their connections: the others are answered, and the server goes on."""

import socket
import struct
from pathlib import Path

from odradek.local.coordination.server import CoordinationServer
from odradek.local.coordination.settings import ServerSettings
from odradek.local.zookeeper_server import free_port

_RESET = struct.pack("ii", 1, 0)


def test_a_command_beside_a_connection_that_was_reset_is_answered(tmp_path: Path) -> None:
    """In one turn the server reads the command first, and lists a client whose socket has no address any more."""
    port = free_port()
    server = CoordinationServer(ServerSettings(tmp_path, port, words=frozenset({"stat"})))
    server.start()
    with socket.create_connection(("127.0.0.1", port)) as asking:
        leaving = socket.create_connection(("127.0.0.1", port))
        leaving_port = leaving.getsockname()[1]
        server._turn()
        server._turn()
        asking.sendall(b"stat")
        leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        leaving.close()
        server._turn()
        asking.settimeout(10)
        assert f"/127.0.0.1:{leaving_port}[1]" in asking.recv(4096).decode()
    server.stop()
    server.run()
