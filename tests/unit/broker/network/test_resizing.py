"""Limits and threads that change while clients are connected, and clients that are muted."""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from frame_client import Echo, framed

from odradek.broker.network.placement import HEAVY, LARGE_BYTES
from odradek.broker.network.request import InboundRequest
from odradek.broker.network.server import SocketServer
from waiting import PATIENCE_S, eventually


class Resizing(Echo):
    """A request of its own changes the number of threads, and is answered afterwards."""

    server: SocketServer | None = None

    def begin(self, request: InboundRequest) -> bool:
        return False

    def rounds(self) -> AbstractContextManager[Callable[[], None]]:
        return nullcontext(lambda: None)

    def run(self, request: InboundRequest) -> None:
        assert self.server is not None
        settings = replace(self.server.settings, num_network_threads=int(request.frame))
        self.server.reconfigure(settings)
        request.reply([framed(bytes(request.frame))])


def test_network_threads_come_and_go_and_whoever_asked_is_answered(serve, connect):
    application = Resizing()
    server = application.server = serve(application, num_network_threads=1)
    for count in (4, 2, 1, 3):
        before = len(server.processors)
        frame = b"%d" % count + b" " * LARGE_BYTES
        for client in [connect(server) for _ in range(before)]:  # one of them asks again through a thread that goes
            assert [client.ask(frame) for _ in range(HEAVY + 1)] == [frame] * (HEAVY + 1)
        eventually(lambda count=count: len(server.processors) == count)
    assert connect(server).ask(b"3") == b"3"


def test_the_connections_of_a_thread_that_goes_are_closed_and_not_counted_any_more(serve, connect):
    server = serve(Echo(), num_network_threads=2)
    light, heavy = connect(server), connect(server)
    assert light.ask(b"here") == b"here"
    for _ in range(HEAVY):
        assert heavy.ask(bytes(2 * LARGE_BYTES)) == bytes(2 * LARGE_BYTES)
    eventually(lambda: [processor.connections for processor in server.processors] == [1, 1])
    server.reconfigure(replace(server.settings, num_network_threads=1))
    eventually(lambda: server.connections == 1)
    assert light.ask(b"still here") == b"still here"
    assert heavy.is_closed()


class Counting(Echo):
    def __init__(self) -> None:
        self.gate = threading.Event()
        self.running = 0
        self.most = 0
        self._lock = threading.Lock()

    def begin(self, request: InboundRequest) -> bool:
        return False

    def rounds(self) -> AbstractContextManager[Callable[[], None]]:
        return nullcontext(lambda: None)

    def run(self, request: InboundRequest) -> None:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        assert self.gate.wait(PATIENCE_S)
        with self._lock:
            self.running -= 1
        request.reply([framed(bytes(request.frame))])


def test_handlers_come_and_go(serve, connect):
    for before, after in ((1, 3), (3, 1)):
        application = Counting()
        server = serve(application, num_io_threads=before)
        clients = [connect(server) for _ in range(6)]
        for client in clients[:before]:
            client.send(b"x")
        eventually(lambda application=application, before=before: application.running == before)
        server.reconfigure(replace(server.settings, num_io_threads=after))
        for client in clients[before:]:
            client.send(b"x")
        if after > before:
            eventually(lambda application=application, after=after: application.running == after)
        application.gate.set()
        assert [client.receive() for client in clients] == [b"x"] * 6
        assert application.most == max(before, after)


class Muting(Echo):
    def begin(self, request: InboundRequest) -> bool:
        if request.frame == b"mute":
            request.mute_connection(300)
        return super().begin(request)


def test_a_muted_client_is_answered_and_then_not_read_for_a_while(serve, connect):
    server = serve(Muting())
    muted, other = connect(server), connect(server)
    began = time.monotonic()
    muted.send(b"mute", b"behind")
    assert muted.receive() == b"mute"
    assert other.ask(b"free") == b"free"
    muted.send(b"later")
    assert [muted.receive(), muted.receive()] == [b"behind", b"later"]
    assert time.monotonic() - began >= 0.3


def test_a_muted_client_that_leaves_is_forgotten(serve, connect):
    server = serve(Muting())
    muted = connect(server)
    assert muted.ask(b"mute") == b"mute"
    muted.close()
    eventually(lambda: server.connections == 0)
