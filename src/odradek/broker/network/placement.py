"""Placement of a listener's connections: light ones share its first processor, heavy ones are spread over the others.

One interpreter runs one thread at a time. Threads that have little to do for each request spend their time waiting for
each other; one thread that serves them all waits for nobody. Large requests and answers are copied by the kernel, in
which other threads run, and may wait for a disk. So a connection begins on the first processor, leaves it after a large
request or answer, and returns after so many small ones in a row.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.broker.network.connection import Connection
    from odradek.broker.network.processor import Processor

LARGE_BYTES = 32 << 10
"""Bytes of a request or an answer from which on it is large."""
SMALL_IN_A_ROW = 64
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
        if others and connection.small_in_a_row < SMALL_IN_A_ROW:
            return min(others, key=_connections)
        return self.first
