"""Requests that may block: another thread serves them, in order per connection, and a full queue drops nothing."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from frame_client import Echo, framed

from odradek.broker.network.request import InboundRequest
from odradek.broker.network.server import SocketServer
from waiting import PATIENCE_S, eventually


class Blocking(Echo):
    """Declines all; serves when the gate is open."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.running = 0
        self.served: list[bytes] = []

    def begin(self, request: InboundRequest) -> bool:
        return super().begin(request) if request.frame == b"quick" else False

    def rounds(self) -> AbstractContextManager[Callable[[], None]]:
        return nullcontext(lambda: None)

    def run(self, request: InboundRequest) -> None:
        self.running += 1
        assert self.gate.wait(PATIENCE_S)
        payload = bytes(request.frame)
        if payload == b"bang":
            raise RuntimeError("bang")
        self.served.append(payload)
        request.reply([framed(payload)])


def test_what_comes_behind_a_blocking_request_waits_for_it(serve, connect):
    blocking = Blocking()
    server = serve(blocking)
    client, other = connect(server), connect(server)
    payloads = [b"%d" % number for number in range(50)]
    client.send(b"first", b"quick", *payloads)
    assert other.ask(b"quick") == b"quick"
    blocking.gate.set()
    assert [client.receive() for _ in range(52)] == [b"first", b"quick", *payloads]
    assert blocking.served == [b"first", *payloads]


def test_a_full_queue_stops_reading_and_drops_nothing(serve, connect):
    blocking = Blocking()
    server = serve(blocking, queued_max_requests=2, num_io_threads=1)
    clients = [connect(server) for _ in range(20)]
    for number, client in enumerate(clients):
        client.send(b"%d" % number, b"%d again" % number)
    eventually(lambda: server.processors[0].requests == 20 and blocking.running == 1 and server.channel.size == 2)
    assert len(server.processors[0]._reader._refused) == 17
    blocking.gate.set()
    for number, client in enumerate(clients):
        assert [client.receive(), client.receive()] == [b"%d" % number, b"%d again" % number]
    assert sorted(blocking.served) == sorted(
        payload for number in range(20) for payload in (b"%d" % number, b"%d again" % number)
    )


def test_a_client_that_leaves_a_full_queue_is_forgotten(serve, connect):
    blocking = Blocking()
    server = serve(blocking, queued_max_requests=1, num_io_threads=1)
    stay, queued, leave = connect(server), connect(server), connect(server)
    for client in (stay, queued):
        client.send(b"x")
    eventually(lambda: server.channel.size == 1)
    leave.send(b"gone")
    eventually(lambda: server.processors[0].requests == 3)
    leave.socket.shutdown(2)
    leave.close()
    blocking.gate.set()
    assert (stay.receive(), queued.receive()) == (b"x", b"x")
    assert stay.ask(b"y") == b"y"


def test_a_failing_handler_closes_only_its_connection(serve, connect):
    blocking = Blocking()
    blocking.gate.set()
    server = serve(blocking, num_io_threads=1)
    bad, good = connect(server), connect(server)
    bad.send(b"bang")
    assert bad.is_closed()
    assert good.ask(b"hello") == b"hello"


def test_one_handler_thread_is_enough_for_one_request_at_a_time(serve, connect):
    blocking = Blocking()
    blocking.gate.set()
    server = serve(blocking, num_io_threads=8)
    assert not _handler_threads(server)
    client = connect(server)
    for _ in range(20):
        client.ask(b"one at a time")
        eventually(lambda: server.channel._idle_threads == 1)  # it answers a little before it is free again
    assert len(_handler_threads(server)) == 1


def test_a_handler_thread_is_started_when_all_are_busy_up_to_the_limit(serve, connect):
    blocking = Blocking()
    server = serve(blocking, num_io_threads=3)
    clients = [connect(server) for _ in range(6)]
    for count, client in enumerate(clients, start=1):
        client.send(b"x")
        expected = (min(count, 3), max(0, count - 3))
        eventually(lambda expected=expected: (blocking.running, server.channel.size) == expected)
        assert len(_handler_threads(server)) == min(count, 3)
    blocking.gate.set()
    assert [client.receive() for client in clients] == [b"x"] * 6
    assert len(_handler_threads(server)) == 3


def _handler_threads(server: SocketServer) -> list[threading.Thread]:
    return [thread for thread in server.channel._threads if thread.is_alive()]


def test_handler_threads_that_can_not_be_started_are_tried_again(serve, connect, monkeypatch):
    """Without any handler the client is disconnected; with one, requests wait for it."""

    def fail(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    blocking = Blocking()
    server = serve(blocking, num_io_threads=2)
    refused, first, second = connect(server), connect(server), connect(server)
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", fail)
        refused.send(b"x")
        assert refused.is_closed()
    first.send(b"first")
    eventually(lambda: blocking.running == 1)
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", fail)
        second.send(b"second")
        eventually(lambda: server.channel.size == 1)
    blocking.gate.set()
    assert (first.receive(), second.receive()) == (b"first", b"second")
