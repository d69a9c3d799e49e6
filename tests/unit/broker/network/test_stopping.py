"""Stopping: what was asked is answered as far as time allows, and nothing is left behind."""

import socket
import threading

import pytest
from frame_client import Echo, framed

from odradek.broker.network.request import InboundRequest
from waiting import PATIENCE_S, eventually


class Slow(Echo):
    """Answers after a while, from another thread; or never."""

    def __init__(self, after_s: float | None) -> None:
        self._after_s = after_s
        self.asked = threading.Event()

    def begin(self, request: InboundRequest) -> bool:
        payload = bytes(request.frame)
        if self._after_s is not None:
            timer = threading.Timer(self._after_s, request.reply, ([framed(payload)],))
            timer.daemon = True
            timer.start()
        self.asked.set()
        return True


def test_an_answer_that_comes_in_time_is_sent_before_the_end(serve, connect):
    slow = Slow(0.15)
    server = serve(slow)
    client, idle = connect(server), connect(server)
    client.send(b"last words")
    assert slow.asked.wait(PATIENCE_S)
    server.stop(3600)  # it ends with the last answer, long before
    assert client.receive() == b"last words"
    assert client.is_closed()
    assert idle.is_closed()
    assert server.connections == 0


def test_an_answer_that_never_comes_does_not_hold_up_the_end(serve, connect):
    slow = Slow(None)
    server = serve(slow, num_network_threads=3)
    client, port = connect(server), server.port("PLAINTEXT")
    client.send(b"unheard")
    assert slow.asked.wait(PATIENCE_S)
    server.stop(0.2)
    assert client.is_closed()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_the_threads_end(serve, connect):
    before = threading.active_count()
    server = serve(Echo(), num_network_threads=3)
    assert connect(server).ask(b"x") == b"x"
    assert threading.active_count() == before + 4
    server.stop(0.1)
    eventually(lambda: threading.active_count() == before)
