"""Connections of secured listeners that are not authenticated yet: bounded in time and in number.

Belongs to a processor. Where there are too many, the oldest is closed: whoever opens a thousand connections and says
nothing on them displaces his own, and costs others nothing but the descriptors.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.broker.network.connection import Connection

UNAUTHENTICATED_MAX = 500


class ConnectionSetups:
    __slots__ = ("_connections", "_max")

    def __init__(self, maximum: int = UNAUTHENTICATED_MAX) -> None:
        self._max = maximum
        self._connections: dict[Connection, None] = {}  # in the order of their arrival

    def add(self, connection: "Connection", deadline_ns: int) -> "Connection | None":
        """Gives the connection that has to be closed for it, if any. Those that are done are forgotten."""
        connection.setup_deadline_ns = deadline_ns
        self._connections[connection] = None
        if len(self._connections) <= self._max:
            return None
        self._connections = {waiting: None for waiting in self._connections if waiting.setup_deadline_ns}
        if len(self._connections) <= self._max:
            return None
        oldest = next(iter(self._connections))
        del self._connections[oldest]
        return oldest

    def remove(self, connection: "Connection") -> None:
        self._connections.pop(connection, None)
