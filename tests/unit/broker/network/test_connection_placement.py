"""Light clients share the first thread of their listener; heavy ones move to the others, with all that is theirs."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import pytest
from frame_client import Echo, FrameClient, framed

from odradek.broker.network.placement import HEAVY, LARGE_BYTES
from odradek.broker.network.request import InboundRequest
from odradek.broker.network.server import SocketServer
from waiting import PATIENCE_S, eventually

LARGE = bytes(2 * LARGE_BYTES)


class Unfold(Echo):
    """A number is answered with so many bytes, "later" by the test, anything else with itself."""

    def __init__(self) -> None:
        self.kept: list[InboundRequest] = []

    def begin(self, request: InboundRequest) -> bool:
        if request.frame == b"later":
            self.kept.append(request)
        elif bytes(request.frame).isdigit():
            request.reply([framed(bytes(int(request.frame)))])
        else:
            super().begin(request)
        return True


class StopInTheRound(Unfold):
    """The round in which the first request is kept stops at its end: answers are sent, and no client has moved."""

    def __init__(self) -> None:
        super().__init__()
        self.stopped, self.may_go_on = threading.Event(), threading.Event()

    def rounds(self) -> AbstractContextManager[Callable[[], None]]:
        return nullcontext(self._end_round)

    def _end_round(self) -> None:
        if self.kept and not self.stopped.is_set():
            self.stopped.set()
            assert self.may_go_on.wait(PATIENCE_S)


@pytest.fixture
def application() -> Unfold:
    return Unfold()


@pytest.fixture
def server(serve, application) -> Iterator[SocketServer]:
    server = serve(application, num_network_threads=3)
    yield server
    server.stop(0.2)
    assert server.connections == 0
    assert server.held_bytes == 0


def spread(server: SocketServer) -> list[int]:
    return [processor.connections for processor in server.processors]


def make_heavy(server: SocketServer, client: FrameClient) -> None:
    """A processor that is awake takes nobody: the client asks until it is where it belongs."""
    port, light = client.socket.getsockname()[1], server.processors[0]

    def is_heavy() -> bool:
        assert client.ask(LARGE) == LARGE
        return all(connection.client_port != port for connection in light._connections.copy().values())

    eventually(is_heavy)


def make_light(server: SocketServer, client: FrameClient) -> None:
    """The server's only client returns to the first thread."""

    def is_light() -> bool:
        assert client.ask(b"little") == b"little"
        return spread(server)[0] == 1

    eventually(is_light)


def test_light_clients_share_the_first_thread(server, connect):
    clients = [connect(server) for _ in range(6)]
    for client in clients * 2:
        assert client.ask(b"light") == b"light"
    assert spread(server) == [6, 0, 0]


@pytest.mark.parametrize("asked", [LARGE, b"%d" % len(LARGE)], ids=["requests", "answers"])
def test_clients_with_large_requests_or_answers_are_spread_over_the_other_threads(server, connect, asked):
    light = connect(server)
    for count in range(1, 5):
        client = connect(server)

        def has_moved(client: FrameClient = client, count: int = count) -> bool:
            assert len(client.ask(asked)) == len(LARGE)
            return sum(spread(server)[1:]) == count

        eventually(has_moved)
    assert spread(server) == [1, 2, 2]
    assert light.ask(b"light") == b"light"


def test_a_heavy_client_that_sends_little_for_a_while_returns(server, connect):
    client = connect(server)
    make_heavy(server, client)
    for _ in range(HEAVY - 1):
        assert client.ask(b"little") == b"little"
    assert spread(server)[0] == 0
    make_light(server, client)
    make_heavy(server, client)


def test_a_client_with_a_few_large_answers_among_small_ones_stays(server, connect):
    """As followers have them while many clients write little: what their fetches complete is served there."""
    client = connect(server)
    for _ in range(20):
        for size in [len(LARGE)] * (HEAVY - 1) + [1] * HEAVY:
            assert len(client.ask(b"%d" % size)) == size
            assert spread(server) == [1, 0, 0]


def test_a_client_with_a_few_small_answers_among_large_ones_is_heavy(server, connect):
    client = connect(server)
    make_heavy(server, client)
    for _ in range(20):
        for size in [1] * (HEAVY - 1) + [len(LARGE)] * HEAVY:
            assert len(client.ask(b"%d" % size)) == size
            assert spread(server)[0] == 0


def test_one_thread_serves_all(serve, connect):
    server = serve(Echo(), num_network_threads=1)
    client = connect(server)
    for frame in (LARGE, b"little", LARGE):
        assert client.ask(frame) == frame
    assert spread(server) == [1]


def test_a_thread_that_is_added_takes_heavy_clients(serve, connect):
    server = serve(Echo(), num_network_threads=1)
    client = connect(server)
    assert client.ask(LARGE) == LARGE
    server.reconfigure(replace(server.settings, num_network_threads=2))
    make_heavy(server, client)
    assert spread(server) == [0, 1]


def test_requests_without_an_answer_yet_move_with_their_client_and_their_memory(server, application, connect):
    client = connect(server)
    size = b"%d" % len(LARGE)
    for _ in range(HEAVY - 1):
        assert client.ask(size) == LARGE
    client.send(size, b"later", b"behind")  # which arrive together
    assert client.receive() == LARGE
    eventually(lambda: spread(server)[0] == 0)
    taker = next(processor for processor in server.processors if processor.connections)
    assert (server.processors[0].held_bytes, taker.held_bytes) == (0, len(b"later"))
    application.kept[0].reply([framed(b"now")])
    assert [client.receive(), client.receive()] == [b"now", b"behind"]
    eventually(lambda: taker.held_bytes == 0)


@pytest.mark.parametrize("closes", [False, True], ids=["answer", "close"])
def test_what_is_posted_to_the_old_thread_before_a_client_moves_is_passed_on(serve, connect, closes):
    application = StopInTheRound()
    server = serve(application, num_network_threads=2)
    client = connect(server)
    size = b"%d" % len(LARGE)
    for _ in range(HEAVY - 1):
        assert client.ask(size) == LARGE
    client.send(size, b"later")
    assert application.stopped.wait(PATIENCE_S)
    (request,) = application.kept
    assert request.connection.owner is server.processors[0]
    if closes:
        request.close_connection("for a test")
    else:
        request.mute_connection(50)
        request.reply([framed(b"now")])
    application.may_go_on.set()
    assert client.receive() == LARGE
    eventually(lambda: request.connection.owner is server.processors[1])
    if closes:
        assert client.is_closed()
    else:
        assert client.receive() == b"now"
        assert client.ask(b"on") == b"on"
    eventually(lambda: spread(server) == [0, 0 if closes else 1])


def test_an_answer_that_is_posted_to_a_thread_that_has_ended_is_passed_on(server, application, connect):
    client = connect(server)
    make_heavy(server, client)
    (gone,) = [processor for processor in server.processors if processor.connections]
    make_light(server, client)
    server.reconfigure(replace(server.settings, num_network_threads=2))
    server.reconfigure(replace(server.settings, num_network_threads=1))
    eventually(lambda: len(server.processors) == 1)
    client.send(b"later")
    eventually(lambda: len(application.kept) == 1)
    gone.answer(application.kept[0], [framed(b"now")])
    assert client.receive() == b"now"


def test_a_heavy_client_that_is_idle_is_closed(serve, connect):
    server = serve(Echo(), num_network_threads=2, connections_max_idle_ms=300)
    client, other = connect(server), connect(server)
    for _ in range(HEAVY):
        assert client.ask(LARGE) == LARGE
    eventually(lambda: spread(server) == [1, 1])
    assert client.is_closed()
    assert other.is_closed()


def test_clients_that_move_all_the_time_lose_nothing(serve, connect):
    server = serve(Echo(), num_network_threads=3)
    frames = [LARGE if number % (4 * HEAVY) < 2 * HEAVY else b"%d" % number for number in range(600)]
    clients = [connect(server) for _ in range(8)]
    received: dict[FrameClient, list[bytes]] = {}

    def send(client: FrameClient, turn: int) -> None:
        client.send(*frames[turn:], *frames[:turn])

    def receive(client: FrameClient) -> None:
        received[client] = [client.receive() for _ in frames]

    threads = [threading.Thread(target=send, args=(client, 40 * n)) for n, client in enumerate(clients)]
    threads += [threading.Thread(target=receive, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert received == {client: frames[40 * n :] + frames[: 40 * n] for n, client in enumerate(clients)}
