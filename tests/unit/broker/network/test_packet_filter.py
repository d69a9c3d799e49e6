"""Filters of the packets that the kernel takes for a socket."""

import socket
from collections.abc import Iterator

import pytest

from odradek.broker.network.packet_filter import DROP_DATA, attach, detach


@pytest.fixture
def connected() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A client and the server's end."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname(), 20)
        server, _ = listening.accept()
    with client, server:
        server.settimeout(20)
        yield client, server


def test_no_data_comes_until_the_filter_is_gone_and_then_all_of_it(
    connected: tuple[socket.socket, socket.socket],
) -> None:
    client, server = connected
    attach(server, DROP_DATA)
    client.sendall(b"dropped at first")
    server.setblocking(False)
    with pytest.raises(BlockingIOError):
        server.recv(100)
    server.settimeout(20)
    server.sendall(b"answer")
    assert client.recv(100) == b"answer"
    detach(server)
    assert server.recv(100) == b"dropped at first", "it was sent again"


def test_the_end_of_a_connection_passes(connected: tuple[socket.socket, socket.socket]) -> None:
    client, server = connected
    attach(server, DROP_DATA)
    client.close()
    assert server.recv(100) == b""
