"""Connections that are not read for a while, because their clients have used more than they may.

Belongs to a processor, and is touched by its thread alone.

A connection may be muted again while it is: the later end holds.
"""

from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.broker.network.connection import Connection

NEVER_NS = 1 << 62


class MutedConnections:
    __slots__ = ("_heap", "_turns", "next_end_ns")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Connection]] = []
        self._turns = count()
        self.next_end_ns = NEVER_NS

    def add(self, connection: "Connection", until_ns: int) -> None:
        if until_ns > connection.muted_until_ns:
            connection.muted_until_ns = until_ns
            heappush(self._heap, (until_ns, next(self._turns), connection))
            self.next_end_ns = self._heap[0][0]

    def ended(self, now_ns: int) -> "list[Connection]":
        """Return the connections whose time is up, which may be read again from now on."""
        over = []
        while self._heap and self._heap[0][0] <= now_ns:
            until_ns, _, connection = heappop(self._heap)
            if connection.muted_until_ns == until_ns:
                connection.muted_until_ns = 0
                if not connection.closed:
                    over.append(connection)
        self.next_end_ns = self._heap[0][0] if self._heap else NEVER_NS
        return over
