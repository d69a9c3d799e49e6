"""Frames of clients, however they are cut, and the answer to bad input."""

import os
import random
import socket
import struct
import threading
import time
from contextlib import suppress

import pytest
from frame_client import Echo, framed

from odradek.broker.network.request import InboundRequest
from odradek.broker.network.server import SocketServer
from odradek.broker.network.settings import ListenerSettings, ServerSettings
from waiting import PATIENCE_S, eventually


class Explosive(Echo):
    def begin(self, request: InboundRequest) -> bool:
        if request.frame == b"bang":
            raise RuntimeError("bang")
        return super().begin(request)


class Holding(Echo):
    """Keeps what is longer than a kilobyte, echoes the rest."""

    def __init__(self) -> None:
        self.kept: list[InboundRequest] = []

    def begin(self, request: InboundRequest) -> bool:
        if len(request.frame) <= 1024:
            return super().begin(request)
        self.kept.append(request)
        return True


class Slow(Echo):
    """Each `slow` request takes longer than a turn; the first one until the gate opens."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.begun: list[bytes] = []

    def begin(self, request: InboundRequest) -> bool:
        self.begun.append(bytes(request.frame))
        if request.frame == b"slow":
            assert self.gate.wait(PATIENCE_S)
            time.sleep(0.03)
        return super().begin(request)


def test_many_long_requests_of_one_client_let_others_have_a_turn(serve, connect):
    slow = Slow()
    server = serve(slow, num_network_threads=1)
    greedy, modest = connect(server), connect(server)
    greedy.send(*[b"slow"] * 50)
    eventually(lambda: slow.begun == [b"slow"])
    modest.send(b"quick")
    slow.gate.set()
    assert modest.receive() == b"quick"
    assert slow.begun.index(b"quick") <= 2  # a turn that was begun, and one more before it was read
    assert [greedy.receive() for _ in range(50)] == [b"slow"] * 50


def test_requests_that_were_read_after_their_client_left_are_known(serve, connect):
    class Witness(Slow):
        def begin(self, request: InboundRequest) -> bool:
            left[bytes(request.frame)] = request.connection.peer_closed
            return super().begin(request)

    left: dict[bytes, bool] = {}
    witness = Witness()
    server = serve(witness, num_network_threads=1)
    stays, leaves = connect(server), connect(server)
    assert stays.ask(b"here") == b"here"
    stays.send(b"slow")
    eventually(lambda: b"slow" in left)  # until the gate opens, the only processor reads nobody
    leaves.send(b"last words")
    leaves.close()
    witness.gate.set()
    assert stays.receive() == b"slow"
    eventually(lambda: b"last words" in left)
    assert left == {b"here": False, b"slow": False, b"last words": True}


def test_frames_that_arrive_byte_by_byte(serve, connect):
    client = connect(serve(Echo()))
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in framed(b"slow") + framed(b"") + framed(b"frame"):
        client.socket.sendall(bytes([byte]))
        time.sleep(0.001)
    assert [client.receive() for _ in range(3)] == [b"slow", b"", b"frame"]


def test_frames_of_every_size_in_pieces_of_every_size(serve, connect):
    client = connect(serve(Echo()))
    chance = random.Random(7)
    payloads = [os.urandom(chance.choice([0, 1, 3, 50, 5_000, 131_067, 131_072, 400_000])) for _ in range(60)]
    payloads.append(os.urandom(5_000_000))
    for payload in payloads:
        data = framed(payload)
        while data:
            cut = chance.choice([1, 3, 1000, 200_000, len(data)])
            client.socket.sendall(data[:cut])
            data = data[cut:]
        assert client.receive() == payload


@pytest.mark.parametrize("size", [-1, -(2**31), 1_000_001, 2**31 - 1, 352_518_912])
def test_an_impossible_size_closes_only_that_connection(serve, connect, size):
    server = serve(Echo(), socket_request_max_bytes=1_000_000)
    bad, good = connect(server), connect(server)
    bad.socket.sendall(struct.pack(">i", size) + b"x")
    assert bad.is_closed()
    assert good.ask(b"hello") == b"hello"


def test_a_failing_application_closes_only_that_connection(serve, connect):
    server = serve(Explosive())
    bad, good = connect(server), connect(server)
    bad.send(b"bang")
    assert bad.is_closed()
    assert good.ask(b"hello") == b"hello"
    assert server.held_bytes == 0


def test_a_claimed_size_allocates_nothing(serve, connect):
    server = serve(Echo(), queued_max_request_bytes=1 << 40)
    before = _resident_bytes()
    for _ in range(30):
        connect(server).socket.sendall(struct.pack(">i", 100 << 20) + b"x")
    eventually(lambda: server.held_bytes == 0 and server.connections == 30)
    time.sleep(0.1)
    assert _resident_bytes() - before < 16 << 20


def test_a_first_frame_that_never_ends_is_given_up(serve, connect):
    server = serve(Echo(), first_frame_timeout_ms=150)
    slow, silent, good = connect(server), connect(server), connect(server)
    assert good.ask(b"a") == b"a"
    slow.socket.sendall(framed(b"hello")[:3])
    assert slow.is_closed()
    assert good.ask(b"b") == b"b"
    assert silent.ask(b"c") == b"c"


def test_an_idle_connection_is_closed_and_a_waiting_one_is_not(connect):
    holding = Holding()
    listener = ListenerSettings("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0)
    settings = ServerSettings((listener,), num_network_threads=1, connections_max_idle_ms=200)
    server = SocketServer(settings, holding)
    server.bind()
    waiting, idle = connect(server), connect(server)
    waiting.send(bytes(2000))
    idle.send(b"a")
    server.start()  # both have asked when it begins to count
    assert idle.receive() == b"a"
    assert idle.is_closed()
    time.sleep(0.3)  # longer than the idle one had
    holding.kept[0].reply([framed(b"at last")])
    assert waiting.receive() == b"at last"
    assert waiting.is_closed()
    server.stop(0.1)


def test_large_frames_wait_for_memory_and_small_ones_do_not(serve, connect):
    holding = Holding()
    server = serve(holding, queued_max_request_bytes=3_000_000)
    first, second, small = connect(server), connect(server), connect(server)
    second.socket.settimeout(0.2)
    first.send(bytes(2_000_000))
    eventually(lambda: len(holding.kept) == 1)
    with pytest.raises(TimeoutError):
        second.send(bytes(20_000_000))  # more than kernel buffers take
    assert small.ask(b"hello") == b"hello"
    assert len(holding.kept) == 1
    holding.kept[0].reply([framed(b"done")])
    assert first.receive() == b"done"
    eventually(lambda: server.processors[0].bytes_in > 3_000_000)


def test_random_bytes_hurt_nobody_else(serve, connect):
    server = serve(Echo(), socket_request_max_bytes=100_000, first_frame_timeout_ms=300)
    good = connect(server)
    chance = random.Random(11)
    for round_number in range(200):
        mad = connect(server)
        with suppress(ConnectionError):  # it may be thrown out before it has said all
            mad.socket.sendall(chance.randbytes(chance.randrange(1, 3000)))
        if round_number % 3 == 0:
            mad.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        mad.close()
        assert good.ask(b"%d" % round_number) == b"%d" % round_number
    eventually(lambda: server.connections == 1)
    assert server.held_bytes == 0


def _resident_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
