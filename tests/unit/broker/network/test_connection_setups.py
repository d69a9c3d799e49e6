"""Connections that are not authenticated yet: an address that has too many displaces its own."""

from typing import Any

from odradek.broker.network.connection_timeouts import ConnectionSetups


class Waiting:
    def __init__(self, host: str) -> None:
        self.client_host = host
        self.setup_deadline_ns = 0


def added(setups: ConnectionSetups, connection: Waiting) -> Any:
    return setups.add(connection, 1)  # type: ignore[arg-type]


def test_the_oldest_of_the_address_that_has_the_most_makes_room() -> None:
    setups = ConnectionSetups(4)
    good = Waiting("10.0.0.1")
    flood = [Waiting("10.0.0.9") for _ in range(6)]
    assert added(setups, good) is None
    assert [added(setups, each) for each in flood] == [None, None, None, *flood[:3]]
    another = Waiting("10.0.0.2")
    assert added(setups, another) is flood[3]


def test_authenticated_and_closed_connections_make_room_without_being_displaced() -> None:
    setups = ConnectionSetups(3)
    connections = [Waiting("10.0.0.1") for _ in range(5)]
    for each in connections[:3]:
        assert added(setups, each) is None
    connections[0].setup_deadline_ns = 0
    assert added(setups, connections[3]) is None
    setups.remove(connections[1])  # type: ignore[arg-type]
    setups.remove(connections[1])  # type: ignore[arg-type]
    assert added(setups, connections[4]) is None
    assert added(setups, Waiting("10.0.0.2")) is connections[2]
