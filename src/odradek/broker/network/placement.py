"""Placement of a listener's connections: light ones share its first processor, heavy ones are spread over the others.

One interpreter runs one thread at a time. Threads with little work per request spend their time waiting for each other;
one thread that serves them all doesn't wait. Large requests and answers are copied by the kernel, in which other
threads run, and may wait for a disk. So a connection begins on the first processor, leaves it when most of its requests
and answers are large, and returns when most of them are small. A follower with a few large answers among many small
ones stays: its fetches complete the writes of clients, which are served there.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.broker.network.connection import Connection
    from odradek.broker.network.processor import Processor

LARGE_BYTES = 32 << 10
"""Bytes of a request or an answer from which on it is large."""
HEAVY = 4
"""Number of large requests and answers, less the small ones among them, from which on a connection is heavy."""
_connections = attrgetter("connections")


class Placement:
    """Processors of one listener."""

    def __init__(self) -> None:
        self.processors: Sequence[Processor] = ()
        """Replaced as a whole, by any thread. The first one stays as long as the listener."""

    @property
    def first(self) -> "Processor":
        return self.processors[0]

    def of(self, connection: "Connection") -> "Processor":
        """Return the processor that is to have the connection, by its last requests and answers."""
        others = self.processors[1:]
        if others and connection.large_lately:
            return min(others, key=_connections)
        return self.first
