"""Connections whose large frames wait for memory: thousands of them, looked at fifty times a second."""

from types import SimpleNamespace
from typing import Any

import pytest

from odradek.broker.network.connection import READABLE
from odradek.broker.network.request_reader import RequestReader

COUNT = 300


class Starving:
    """A connection with an unfinished frame of a megabyte. Counts how often it is compared with another one."""

    compared = 0

    def __init__(self) -> None:
        self.reader = SimpleNamespace(frame_size=1 << 20)
        self.outbox = SimpleNamespace(unsent_bytes=0)
        self.unread: list[bytearray] = []
        self.unanswered: list[Any] = []
        self.delegated = None
        self.closed = False
        self.muted_until_ns = self.reserved_bytes = 0
        self.interest = READABLE

    def __eq__(self, other: object) -> bool:
        Starving.compared += 1
        return self is other

    def __hash__(self) -> int:
        return id(self)


@pytest.fixture
def reader() -> RequestReader:
    def set_interest(connection: Any, interest: int) -> None:
        connection.interest = interest

    settings: Any = SimpleNamespace(max_unanswered_per_connection=10, max_unsent_bytes_per_connection=1 << 20)
    nothing: Any = SimpleNamespace(begin=None, reserve=lambda connection, now_ns: False)
    return RequestReader(settings, nothing, nothing, nothing, nothing, nothing, nothing, set_interest)


def test_a_look_at_them_costs_no_more_than_there_are(reader: RequestReader) -> None:
    connections: list[Any] = [Starving() for _ in range(COUNT)]
    for _ in range(2):
        for connection in connections:
            reader.read(connection)
    for _ in range(3):
        reader.resume(lambda: None)
    assert [id(connection) for connection in reader.starved] == list(map(id, connections)), "each once, in order"
    assert not any(connection.interest & READABLE for connection in connections)
    assert Starving.compared <= COUNT
