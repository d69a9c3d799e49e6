"""A line between two processes: late, whole and in order; cut, and mended."""

import socket
import threading
from collections.abc import Iterator

import pytest

from odradek.apps.lab.line import Line

PATIENCE_S = 30


@pytest.fixture
def echo() -> Iterator[tuple[str, int]]:
    """A server that says everything back."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=repeat, args=(connection,), daemon=True).start()

    def repeat(connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(1 << 16):
                connection.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def dial(line: Line) -> socket.socket:
    return socket.create_connection(("127.0.0.1", line.port), timeout=PATIENCE_S)


def say(connection: socket.socket, message: bytes) -> bytes:
    connection.sendall(message)
    heard = b""
    while len(heard) < len(message) and (data := connection.recv(1 << 16)):
        heard += data
    return heard


@pytest.mark.parametrize("delay_ms", [0, 20])
def test_everything_arrives_in_order(echo: tuple[str, int], delay_ms: int) -> None:
    line = Line(echo, delay_ms)
    message = b"".join(number.to_bytes(4, "big") for number in range(15_000))
    try:
        with dial(line) as connection:
            assert say(connection, message) == message
    finally:
        line.close()


def test_a_cut_line_lets_nothing_through_until_it_is_mended(echo: tuple[str, int]) -> None:
    line = Line(echo)
    try:
        with dial(line) as connection:
            assert say(connection, b"hello") == b"hello"
            line.cut()
            assert connection.recv(1) == b""
        with dial(line) as refused:
            assert refused.recv(1) == b""
        line.heal()
        with dial(line) as connection:
            assert say(connection, b"again") == b"again"
    finally:
        line.close()
