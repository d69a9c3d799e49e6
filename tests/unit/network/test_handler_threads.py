"""Requests that may block: another thread serves them, in order per connection, and a full queue drops nothing."""

import threading
import time

from frame_client import Echo, framed

from odradek.network.request import InboundRequest
from waiting import eventually


class Blocking(Echo):
    """Declines all; serves when the gate is open."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.served: list[bytes] = []

    def begin(self, request: InboundRequest) -> bool:
        return super().begin(request) if request.frame == b"quick" else False

    def end_turn(self) -> None:
        pass

    def run(self, request: InboundRequest) -> None:
        assert self.gate.wait(10)
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
    eventually(lambda: server.channel.size == 2)
    time.sleep(0.1)
    assert server.channel.size == 2
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


def test_handler_threads_are_started_only_when_needed(serve, connect):
    blocking = Blocking()
    blocking.gate.set()
    eventually(lambda: not _handler_threads())  # those of earlier tests end by themselves
    server = serve(blocking, num_io_threads=8)
    assert not _handler_threads()
    client = connect(server)
    for _ in range(20):
        client.ask(b"one at a time")
    assert 1 <= len(_handler_threads()) < 8


def _handler_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("handler-")]
