"""Answers leave in the order of the requests, whoever gives them and when."""

import os
import random
import struct
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

import pytest
from frame_client import Echo, framed

from odradek.base.file_slice import FileSlice
from odradek.broker.network.placement import HEAVY, LARGE_BYTES
from odradek.broker.network.request import InboundRequest
from waiting import eventually

LARGE = bytes(LARGE_BYTES + 1)


class Keep:
    """Keeps every request unanswered."""

    def __init__(self) -> None:
        self.requests: list[InboundRequest] = []

    def begin(self, request: InboundRequest) -> bool:
        self.requests.append(request)
        return True

    def rounds(self) -> AbstractContextManager[Callable[[], None]]:
        return nullcontext(lambda: None)

    def run(self, request: InboundRequest) -> None:
        raise AssertionError("nothing was declined")


class AnswerTogether(Keep):
    """Answers what it was given when there is nothing more."""

    def __init__(self) -> None:
        super().__init__()
        self.together: list[int] = []

    def rounds(self) -> AbstractContextManager[Callable[[], None]]:
        return nullcontext(self._end_round)

    def _end_round(self) -> None:
        requests, self.requests = self.requests, []
        if requests:
            self.together.append(len(requests))
        for request in requests:
            request.reply([framed(bytes(request.frame))])


class AnswerWithFile:
    """The payload is position and size of the slice to answer with."""

    def __init__(self, path: Path) -> None:
        self.file = open(path, "rb", buffering=0)  # noqa: SIM115, closed by the test
        self.sent_ns: list[int] = []

    def begin(self, request: InboundRequest) -> bool:
        position, size = struct.unpack(">ii", request.frame)
        request.on_sent = self.sent_ns.append
        request.reply([struct.pack(">i", size + 6), b"<<<", FileSlice(self.file, position, size), b">>>"])
        return True

    def rounds(self) -> AbstractContextManager[Callable[[], None]]:
        return nullcontext(lambda: None)

    def run(self, request: InboundRequest) -> None:
        raise AssertionError("nothing was declined")


def test_ten_thousand_pipelined_requests_are_answered_in_order(serve, connect):
    client = connect(serve(Echo()))
    payloads = [b"%d" % number for number in range(10_000)]
    sender = threading.Thread(target=client.send, args=payloads)
    sender.start()
    assert [client.receive() for _ in payloads] == payloads
    sender.join()


def test_what_was_read_together_may_be_answered_together(serve, connect):
    application = AnswerTogether()
    client = connect(serve(application))
    payloads = [b"%d" % number for number in range(1_000)]  # more than may be unanswered at once
    client.send(*payloads)
    assert [client.receive() for _ in payloads] == payloads
    assert max(application.together) > 1
    client.send(b"alone")
    assert client.receive() == b"alone"


def test_answers_from_other_threads_in_any_order_leave_in_request_order(serve, connect):
    keep = Keep()
    client = connect(serve(keep))
    payloads = [b"%d" % number for number in range(100)]
    client.send(*payloads)
    eventually(lambda: len(keep.requests) == 100)
    shuffled = [(request, bytes(request.frame)) for request in keep.requests]
    random.shuffle(shuffled)

    def answer(part: int) -> None:
        for request, payload in shuffled[part::4]:
            request.reply([framed(payload)])

    threads = [threading.Thread(target=answer, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    assert [client.receive() for _ in payloads] == payloads
    for thread in threads:
        thread.join()


def test_a_request_without_an_answer_holds_up_nobody(serve, connect):
    keep = Keep()
    client = connect(serve(keep))
    client.send(b"silent", b"loud")
    eventually(lambda: len(keep.requests) == 2)
    keep.requests[1].reply([framed(b"loud")])
    keep.requests[0].reply(None)
    assert client.receive() == b"loud"


def test_a_second_answer_is_ignored(serve, connect):
    keep = Keep()
    client = connect(serve(keep))
    client.send(b"a")
    eventually(lambda: len(keep.requests) == 1)
    keep.requests[0].reply([framed(b"first")])
    keep.requests[0].reply([framed(b"second")])
    assert client.receive() == b"first"
    client.send(b"b")
    eventually(lambda: len(keep.requests) == 2)
    keep.requests[1].reply([framed(b"third")])
    assert client.receive() == b"third"


def test_beyond_the_limit_of_unanswered_requests_the_client_waits(serve, connect):
    keep = Keep()
    client = connect(serve(keep, max_unanswered_per_connection=3))
    client.send(*[b"%d" % number for number in range(10)])
    eventually(lambda: len(keep.requests) == 3)
    for number in range(10):
        eventually(lambda number=number: len(keep.requests) > number)
        assert len(keep.requests) <= number + 3
        keep.requests[number].reply([framed(bytes(keep.requests[number].frame))])
        assert client.receive() == b"%d" % number


def test_the_frame_is_writable_and_belongs_to_its_request(serve, connect):
    keep = Keep()
    client = connect(serve(keep))
    client.send(b"aaaa", b"bbbb")
    eventually(lambda: len(keep.requests) == 2)
    first, second = keep.requests
    first.frame[:2] = b"XX"
    client.send(b"cccc")
    eventually(lambda: len(keep.requests) == 3)
    assert (bytes(first.frame), bytes(second.frame)) == (b"XXaa", b"bbbb")


def test_large_file_slices_reach_a_client_with_a_tiny_window(serve, connect, tmp_path):
    content = os.urandom(8 << 20)
    path = tmp_path / "segment"
    path.write_bytes(content)
    application = AnswerWithFile(path)
    server = serve(application)
    client = connect(server, receive_buffer=4096)
    ranges = [(0, 8 << 20), (17, 1), (1 << 20, (3 << 20) + 5), (0, 0)]
    client.send(*[struct.pack(">ii", *piece) for piece in ranges])
    for position, size in ranges:
        assert client.receive() == b"<<<" + content[position : position + size] + b">>>"
    eventually(lambda: len(application.sent_ns) == len(ranges))
    assert application.sent_ns == sorted(application.sent_ns)
    application.file.close()


@pytest.mark.parametrize("promised", [1000, 100_000], ids=["short enough to copy", "sent from the file"])
def test_a_truncated_file_closes_the_connection_rather_than_sending_something_else(serve, connect, tmp_path, promised):
    path = tmp_path / "segment"
    path.write_bytes(b"short")
    application = AnswerWithFile(path)
    server = serve(application)
    client, other = connect(server), connect(server)
    client.send(struct.pack(">ii", 0, promised))
    assert client.receive_until_closed()[7:] in (b"", b"short")
    assert other.ask(struct.pack(">ii", 0, 5)) == b"<<<short>>>"
    application.file.close()


def test_a_client_that_never_reads_stops_being_read_and_others_are_served(serve, connect, tmp_path):
    path = tmp_path / "segment"
    path.write_bytes(bytes(1 << 20))
    application = AnswerWithFile(path)
    server = serve(application, max_unsent_bytes_per_connection=8 << 20)
    lazy, good = connect(server, receive_buffer=4096), connect(server)
    lazy.socket.settimeout(0.3)
    ask = framed(struct.pack(">ii", 0, 1 << 20))
    with suppress(TimeoutError):
        while True:
            lazy.socket.sendall(ask * 1000)  # until the kernel's buffers are full

    asked = 0

    def read_from_the_lazy_one() -> int:
        nonlocal asked
        asked += 1
        assert len(good.ask(struct.pack(">ii", 0, 100))) == 106
        return server.processors[0].requests - asked

    eventually(lambda: read_from_the_lazy_one() == read_from_the_lazy_one())
    assert read_from_the_lazy_one() < 200
    application.file.close()


class AnswerThePrevious(Echo):
    """Each request, whoever sent it, answers the one that came before it; b"last" also itself."""

    def __init__(self) -> None:
        self.senders: list[str] = []
        self._waiting: InboundRequest | None = None
        self._lock = threading.Lock()

    def begin(self, request: InboundRequest) -> bool:
        request.on_sent = lambda _now_ns: self.senders.append(threading.current_thread().name)
        with self._lock:
            previous, self._waiting = self._waiting, request
        if previous is not None:
            previous.reply([framed(bytes(previous.frame))])
        if request.frame == b"last":
            request.reply([framed(b"last")])
        return True


def test_a_peer_sends_the_answer_of_a_processor_that_sleeps(serve, connect):
    application = AnswerThePrevious()
    server = serve(application, num_network_threads=2)
    first, second = connect(server), connect(server)
    second.send(LARGE)
    for _ in range(HEAVY - 1):
        assert second.ask(LARGE) == LARGE
    eventually(lambda: server.processors[0].requests == HEAVY)
    first.send(b"first")
    assert second.receive() == LARGE
    eventually(lambda: [processor.connections for processor in server.processors] == [1, 1])
    eventually(lambda: all(processor._mailbox.owner_sleeps for processor in server.processors))
    second.send(b"last")

    assert (first.receive(), second.receive()) == (b"first", b"last")
    eventually(lambda: len(application.senders) == HEAVY + 2)
    assert application.senders[HEAVY:] == ["network-PLAINTEXT-1"] * 2  # the thread that read the second's last request


class AnswerAndStay(AnswerThePrevious):
    """The last request stays in its handler until its client lets it go."""

    def __init__(self) -> None:
        super().__init__()
        self.may_leave = threading.Event()

    def begin(self, request: InboundRequest) -> bool:
        super().begin(request)
        if request.frame == b"last":
            assert self.may_leave.wait(30)
        return True


@pytest.mark.parametrize("threads", [1, 2])
def test_a_lone_answer_leaves_before_the_request_that_made_it_possible_is_done(serve, connect, threads):
    application = AnswerAndStay()
    server = serve(application, num_network_threads=threads)
    first, second = connect(server), connect(server)
    first.send(b"first")
    eventually(lambda: sum(processor.requests for processor in server.processors) == 1)
    eventually(lambda: all(processor._mailbox.owner_sleeps for processor in server.processors))
    second.send(b"last")

    assert first.receive() == b"first"
    application.may_leave.set()
    assert second.receive() == b"last"


def test_no_answer_is_lost_between_processors_that_answer_for_each_other(serve, connect):
    clients, asked = 9, 400
    server = serve(AnswerThePrevious(), num_network_threads=3)
    connected = [connect(server) for _ in range(clients)]
    received: dict[int, list[bytes]] = {}

    def frame(number: int, index: int) -> bytes:
        return b"%d" % index if number % 3 else LARGE

    def ask(number: int) -> None:
        for index in range(asked):
            connected[number].send(frame(number, index))
        received[number] = [connected[number].receive() for _ in range(asked)]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    eventually(lambda: sum(processor.requests for processor in server.processors) == clients * asked)
    assert connect(server).ask(b"last") == b"last"
    for thread in threads:
        thread.join()
    assert [processor.connections for processor in server.processors][1:] != [0, 0]
    assert received == {number: [frame(number, index) for index in range(asked)] for number in range(clients)}
