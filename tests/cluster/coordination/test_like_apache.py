"""The embedded coordination server beside Apache ZooKeeper: the same operations, answers and notifications.

Several sessions, one operation after the other. Answers are compared whole (zxid, error, body), but for times, session
ids, and the order of children and identities, which Apache doesn't define. Notifications are compared per session, in
their order; those of a transaction that closes a session in any order.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.coordination.random_operations import RandomOperations
from cluster.coordination.raw_client import Event, Operation, RawClient, nothing
from odradek.local.coordination.core import jute
from odradek.local.coordination.core.protocol import OpCode
from odradek.local.coordinators import CoordinationProcess
from odradek.local.zookeeper_server import EmbeddedZooKeeper

_SESSIONS = 4


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Addresses of both servers, which are empty: zxids are compared, too."""
    directory: Path = tmp_path_factory.mktemp("coordination")
    apache, embedded = EmbeddedZooKeeper(directory / "apache"), CoordinationProcess(directory / "embedded")
    try:
        apache.start()
        embedded.start()
        yield apache.connect, embedded.connect
    finally:
        apache.stop()
        embedded.stop()


class Side:
    """One of the two servers, with the clients of the story."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._owners: dict[int, str] = {0: "none"}
        self.clients: list[RawClient] = []
        for _ in range(_SESSIONS):
            self.open()

    def open(self) -> None:
        client = RawClient(self._address)
        self._owners[client.session_id] = f"session {len(self._owners)}"
        self.clients.append(client)

    def close(self, index: int) -> object:
        return self.clients.pop(index).close_session()

    def call(self, index: int, operation: Operation) -> object:
        return self._comparable(self.clients[index].call(operation))

    def reconnect(self, index: int, watched: list[str]) -> object:
        """As a client does that has lost its connection: with its session, and the watches that it remembers."""
        client = self.clients[index]
        seen = client.seen_zxid
        client.drop()
        assert client.connect()
        body = jute.int64(seen) + b"".join(jute.vector(map(jute.string, watched)) for _ in range(5))
        return self._comparable(client.call(Operation(OpCode.SET_WATCHES2, body, nothing)))

    def events(self) -> list[list[Event]]:
        """Events of each client, since the last time."""
        told: list[list[Event]] = []
        for client in self.clients:
            client.ping()
            told.append(client.events)
            client.events = []
        return told

    def _comparable(self, value: object) -> object:
        if isinstance(value, dict):
            return {key: self._owners[part] if key == "owner" else part for key, part in value.items()}
        if isinstance(value, list | tuple):
            return [self._comparable(part) for part in value]
        return value


def _in_any_order(events: list[list[Event]]) -> list[list[Event]]:
    return [sorted(told) for told in events]


def _tell(addresses: tuple[str, str], seed: int, steps: int) -> None:
    story = RandomOperations(seed)
    apache, embedded = Side(addresses[0]), Side(addresses[1])
    for step in range(steps):
        index = story.choose(_SESSIONS)
        where = f"seed {seed}, step {step}, session {index}"
        if story.chance(0.01):
            assert apache.close(index) == embedded.close(index), where
            assert _in_any_order(apache.events()) == _in_any_order(embedded.events()), where
            apache.open()
            embedded.open()
        elif story.chance(0.02):
            watched = [story.path() for _ in range(2)]
            assert apache.reconnect(index, watched) == embedded.reconnect(index, watched), where
        else:
            operation = story.next()
            assert apache.call(index, operation) == embedded.call(index, operation), f"{where}: {operation}"
        assert apache.events() == embedded.events(), where
    while apache.clients:
        assert apache.close(0) == embedded.close(0)


@pytest.mark.parametrize("seed", [1, 2])
def test_random_operations_of_several_sessions(addresses: tuple[str, str], seed: int) -> None:
    _tell(addresses, seed, 300)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_random_operations(addresses: tuple[str, str], seed: int) -> None:
    _tell(addresses, seed, 5_000)
