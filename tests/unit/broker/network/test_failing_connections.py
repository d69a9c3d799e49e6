"""A fault of one connection ends that connection: its network thread, and all others', go on."""

from collections.abc import Callable
from typing import Any

import pytest
from frame_client import Echo, FrameClient, framed

from odradek.base.threads import failed_threads
from odradek.broker.network.request import InboundRequest

LARGE = 30 << 20


class ClosesBehindALargeAnswer(Echo):
    """Closes the connection when the answer to `large` is sent, as the gate does with a refused login."""

    def begin(self, request: InboundRequest) -> bool:
        if bytes(request.frame) != b"large":
            return super().begin(request)
        request.on_sent = lambda sent_ns: request.close_connection("that was its last answer")
        request.reply([framed(bytes(LARGE))])
        return True


class Breaks(Echo):
    """Makes the next look at the connection fail in a way that nobody foresaw."""

    def begin(self, request: InboundRequest) -> bool:
        if bytes(request.frame) == b"read":
            request.connection.reader = _Broken()  # type: ignore[assignment]
        if bytes(request.frame) == b"end":
            request.connection.owner._on_closed = _broken  # type: ignore[attr-defined]
        return super().begin(request)


class _Broken:
    expects_large = False
    frame_size = 0

    def read(self, scratch: object) -> list[bytearray]:
        raise MemoryError


def _broken(connection: object) -> None:
    raise RuntimeError("dictionary changed size during iteration")


def test_an_answer_that_closes_its_connection_may_wait_for_a_slow_reader(
    serve: Callable[..., Any], connect: Callable[..., FrameClient]
) -> None:
    failed = failed_threads()
    server = serve(ClosesBehindALargeAnswer())
    slow = connect(server, receive_buffer=4096)
    slow.send(b"large")
    assert connect(server).ask(b"other") == b"other", "the answer fills the socket, and others are served"
    assert len(slow.receive_until_closed()) == LARGE + 4
    assert connect(server).ask(b"other") == b"other"
    assert failed_threads() == failed


@pytest.mark.parametrize("what", [b"read", b"end"])
def test_a_fault_that_nobody_foresaw_ends_one_connection(
    serve: Callable[..., Any], connect: Callable[..., FrameClient], what: bytes, capsys: Any
) -> None:
    failed = failed_threads()
    server = serve(Breaks())
    broken, other = connect(server), connect(server)
    assert other.ask(b"other") == b"other"
    assert broken.ask(what) == what
    if what == b"read":
        broken.send(b"again")
        assert broken.is_closed()
    else:
        broken.close()
    assert other.ask(b"other") == b"other"
    assert connect(server).ask(b"other") == b"other"
    assert failed_threads() == failed
    assert "connection failed" in capsys.readouterr().err
