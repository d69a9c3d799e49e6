"""Timeouts of a processor's connections: idle ones, unfinished first frames, and unfinished frames whose memory others
need.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from odradek.broker.network.frame_memory import FrameMemory
from odradek.broker.network.muted_connections import NEVER_NS
from odradek.broker.network.settings import ServerSettings

if TYPE_CHECKING:
    from odradek.broker.network.connection import Connection

UNAUTHENTICATED_MAX = 1500


class ConnectionSetups:
    """Connections of secured listeners that are not authenticated yet: bounded in time and in number.

    Where there are too many, the oldest of the address that has the most is closed: a client that opens a thousand
    connections and says nothing on them displaces its own, and costs others nothing but the descriptors.
    """

    __slots__ = ("_by_address", "_count", "_max")

    def __init__(self, maximum: int = UNAUTHENTICATED_MAX) -> None:
        self._max = maximum
        self._count = 0
        self._by_address: dict[str, dict[Connection, None]] = {}  # each in the order of arrival

    def add(self, connection: "Connection", deadline_ns: int) -> "Connection | None":
        """Add a connection. Return the one that has to be closed for it, if any. Finished ones are removed."""
        connection.setup_deadline_ns = deadline_ns
        self._by_address.setdefault(connection.client_host, {})[connection] = None
        self._count += 1
        while self._count > self._max:
            most = max(self._by_address.values(), key=len)
            oldest = next(iter(most))
            self.remove(oldest)
            if oldest.setup_deadline_ns:
                return oldest
        return None

    def remove(self, connection: "Connection") -> None:
        waiting = self._by_address.get(connection.client_host)
        if waiting is not None and connection in waiting:
            del waiting[connection]
            self._count -= 1
            if not waiting:
                del self._by_address[connection.client_host]

    def of(self, address: str) -> "list[Connection]":
        """Return the connections of an address that are not authenticated yet."""
        return [connection for connection in self._by_address.get(address, ()) if connection.setup_deadline_ns]


_MS = 1_000_000
_LOOK_AGAIN_NS = 10 * _MS


class ConnectionTimeouts:
    __slots__ = ("_idle_ns", "_memory", "_setups", "_unfinished_ns", "next_look_ns")

    def __init__(self, settings: ServerSettings, memory: FrameMemory) -> None:
        self._idle_ns = settings.connections_max_idle_ms * _MS
        self._unfinished_ns = settings.first_frame_timeout_ms * _MS
        self._memory = memory
        self._setups = ConnectionSetups()
        self.next_look_ns = NEVER_NS

    def connected(self, connection: "Connection", now_ns: int) -> "Connection | None":
        """Return a connection that has to be closed, because too many are not authenticated yet."""
        self._look_by(now_ns + self._idle_ns)
        if not connection.is_secured:
            return None
        self._look_by(now_ns + self._unfinished_ns)
        return self._setups.add(connection, now_ns + self._unfinished_ns)

    def taken_over(self, connection: "Connection") -> None:
        """Take a connection of another processor, long after its first frame."""
        self._look_by(connection.last_active_ns + self._idle_ns)

    def left(self, connection: "Connection") -> None:
        """Remove a connection that is closed or moved."""
        self._setups.remove(connection)

    def closed(self, connection: "Connection") -> "list[Connection]":
        """Return the connections that have to be closed with it: all that are not logged in, of a client that held up
        others."""
        self.left(connection)
        return self._setups.of(connection.client_host) if connection.held_up_others else []

    def reserved(self, now_ns: int) -> None:
        """Note that memory was reserved for a frame."""
        self._look_by(now_ns + self._unfinished_ns)

    def read_from(self, connection: "Connection", now_ns: int, *, complete: bool) -> None:
        """Note bytes of a client whose first frame, or its first since the login, is incomplete."""
        if complete:
            connection.first_frame_began_ns = None
        elif connection.first_frame_began_ns == 0:
            connection.first_frame_began_ns = now_ns
            self._look_by(now_ns + self._unfinished_ns)

    def overdue(self, connections: "Iterable[Connection]", now_ns: int) -> "list[tuple[Connection, str]]":
        """Return the connections whose time is up, with the reason, and compute the next time."""
        self.next_look_ns = NEVER_NS
        over = []
        for connection in connections:
            deadline_ns, reason = self._deadline(connection, now_ns)
            if deadline_ns <= now_ns:
                over.append((connection, reason))
            else:
                self._look_by(max(deadline_ns, now_ns + _LOOK_AGAIN_NS))
        return over

    def _look_by(self, deadline_ns: int) -> None:
        self.next_look_ns = min(self.next_look_ns, deadline_ns)

    def _deadline(self, connection: "Connection", now_ns: int) -> tuple[int, str]:
        if self._memory.is_short(connection):
            reason = "its frame holds memory that others need, and doesn't end"
            return connection.reserved_ns + self._unfinished_ns, reason
        if connection.setup_deadline_ns:
            return connection.setup_deadline_ns, "not authenticated in time"
        if connection.first_frame_began_ns:
            return connection.first_frame_began_ns + self._unfinished_ns, "its first frame never ended"
        if connection.muted_until_ns:
            return connection.muted_until_ns + self._idle_ns, "idle"
        if connection.unanswered and not connection.unanswered[0].answered and not connection.outbox:
            return now_ns + self._idle_ns, ""  # it waits for us
        return connection.last_active_ns + self._idle_ns, "idle"
