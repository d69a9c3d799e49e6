"""One processor's share of the memory for requests, which all processors share.

A frame counts from its first byte, if it is large, else from its last, until its request is answered or lets go of it.
"""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from odradek.broker.network.connection import Connection
    from odradek.broker.network.request import InboundRequest


class SharedMemory(Protocol):
    """Bytes that all processors together may hold in frames."""

    def has_room_for(self, size: int) -> bool: ...


class FrameMemory:
    __slots__ = ("_shared", "held_bytes")

    def __init__(self, shared: SharedMemory) -> None:
        self._shared = shared
        self.held_bytes = 0

    def reserve(self, connection: "Connection", now_ns: int) -> bool:
        """Reserve all of the memory for the unfinished frame, if possible, so that it can be completed."""
        size = connection.reader.frame_size
        if not self._shared.has_room_for(size):
            return False
        connection.reserved_bytes = size
        connection.reserved_ns = now_ns
        self.held_bytes += size
        return True

    def is_short(self, connection: "Connection") -> bool:
        """Return whether the memory set aside for the connection's frame is missing elsewhere."""
        return connection.reserved_bytes > 0 and not self._shared.has_room_for(connection.reserved_bytes)

    def hold(self, connection: "Connection", size: int) -> None:
        """Account for complete frames of this size; the last may be the one for which memory was set aside."""
        self.held_bytes += size
        if connection.reserved_bytes:
            self.held_bytes -= connection.reserved_bytes
            connection.reserved_bytes = 0

    def release(self, request: "InboundRequest") -> None:
        self.held_bytes -= request.held_bytes
        request.held_bytes = 0

    def give(self, taker: "FrameMemory", connection: "Connection") -> None:
        """Pass the memory of a connection without unread frames to another processor."""
        held_bytes = sum(request.held_bytes for request in connection.unanswered)
        self.held_bytes -= held_bytes
        taker.held_bytes += held_bytes

    def release_all(self, connection: "Connection") -> None:
        """Release everything held for a closed connection."""
        self.held_bytes -= connection.reserved_bytes + sum(map(len, connection.unread))
        connection.reserved_bytes = 0
        for request in connection.unanswered:
            self.release(request)
