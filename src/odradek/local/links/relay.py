"""Carries bytes between brokers, and between brokers and ZooKeeper, over links that can be cut.

A cut link is a broken switch: connections stay open and go silent, new ones are made and answered by nobody. When it is
healed, what was sent meanwhile arrives, as TCP would have it.

A connection belongs to the broker whose process has its other end. It may not be found at first: a broker may connect
before its process id is in its file. Connections of unknown processes are looked up again while links are cut;
otherwise a broker would keep its session with ZooKeeper over a link that is cut.
"""

import asyncio
import itertools
import socket
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from pathlib import Path

from odradek.local.links.cuts import Cuts, Node, is_cut, read_cuts
from odradek.local.links.plan import Plan
from odradek.local.links.socket_owner import owner

_LOOK_SECONDS = 0.1
_LOOKS_PER_SEARCH = 10
_GONE_SECONDS = 1.0
_CHUNK_BYTES = 1 << 18
_CONNECTIONS_MAX = 900
_HOST = "127.0.0.1"


class _Line:
    """Link of one broker to another, or to ZooKeeper; all connections between the two share it."""

    def __init__(self, source: int | None, node: Node) -> None:
        self.source = source
        self.node = node
        self.open = asyncio.Event()

    def apply(self, cuts: Cuts) -> None:
        if is_cut(cuts, self.source, self.node):
            self.open.clear()
        else:
            self.open.set()

    async def lets_through(self, end: asyncio.StreamWriter) -> bool:
        """Wait until the link is open; return False if the other end was closed meanwhile."""
        while not self.open.is_set():
            if not _is_established(end):
                return False
            try:
                await asyncio.wait_for(self.open.wait(), _GONE_SECONDS)
            except TimeoutError:
                continue
        return True


class _Connection:
    """One connection, and the line that it is on."""

    def __init__(self, node: Node, end: asyncio.StreamWriter, line: _Line) -> None:
        self.node = node
        self.line = line
        self._here, self._peer = end.get_extra_info("sockname"), end.get_extra_info("peername")

    def source(self, pids: Iterable[tuple[int, int]]) -> int | None:
        if self._here is None or self._peer is None:
            return None  # it was closed as soon as it was made
        return owner(self._here[1], self._peer[1], pids)

    async def lets_through(self, end: asyncio.StreamWriter) -> bool:
        return await self.line.lets_through(end)


class Relay:
    def __init__(self, plan: Plan, cuts_file: Path, pids: Callable[[], Iterable[tuple[int, int]]]) -> None:
        self._plan = plan
        self._cuts_file = cuts_file
        self._pids = pids
        self._cuts: Cuts = {}
        self._lines: dict[tuple[int | None, Node], _Line] = {}
        self._unknown: set[_Connection] = set()
        self._connections = 0

    async def run(self) -> None:
        self._cuts = read_cuts(self._cuts_file)
        nodes: list[tuple[Node, int, str]] = [(None, link.port, link.target) for link in self._plan.servers]
        nodes += [(broker, link.port, link.target) for broker, link in self._plan.brokers.items()]
        for node, port, target in nodes:
            await asyncio.start_server(partial(self._serve, node, target), _HOST, port, limit=_CHUNK_BYTES)
        for look in itertools.count():
            await asyncio.sleep(_LOOK_SECONDS)
            cuts = read_cuts(self._cuts_file)
            is_changed = cuts != self._cuts
            if is_changed:
                self._cuts = cuts
                for line in self._lines.values():
                    line.apply(cuts)
            if cuts and (is_changed or look % _LOOKS_PER_SEARCH == 0):
                self._search(list(self._unknown))

    async def _serve(self, node: Node, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        connection = _Connection(node, writer, self._line(None, node))
        self._unknown.add(connection)
        far: asyncio.StreamWriter | None = None
        try:
            if self._connections > _CONNECTIONS_MAX:
                return
            self._search([connection])
            if await connection.lets_through(writer):
                host, _, port = target.rpartition(":")
                far_reader, far = await asyncio.open_connection(host, int(port), limit=_CHUNK_BYTES)
                await _both(_copy(connection, reader, writer, far), _copy(connection, far_reader, writer, writer))
        except OSError:
            pass  # one side is gone; so is the connection
        finally:
            self._connections -= 1
            self._unknown.discard(connection)
            for end in (writer, far):
                if end is not None:
                    end.close()

    def _search(self, connections: Iterable[_Connection]) -> None:
        for connection in connections:
            source = connection.source(self._pids())
            if source is not None:
                connection.line = self._line(source, connection.node)
                self._unknown.discard(connection)

    def _line(self, source: int | None, node: Node) -> _Line:
        line = self._lines.get((source, node))
        if line is None:
            line = self._lines[source, node] = _Line(source, node)
            line.apply(self._cuts)
        return line


async def _copy(
    connection: _Connection, reader: asyncio.StreamReader, source_end: asyncio.StreamWriter, to: asyncio.StreamWriter
) -> None:
    while await connection.lets_through(source_end):
        data = await reader.read(_CHUNK_BYTES)
        if not data or not await connection.lets_through(source_end):
            return
        to.write(data)
        await to.drain()


async def _both(one: Coroutine[None, None, None], other: Coroutine[None, None, None]) -> None:
    """Run both directions until one of them ends: then the other has nothing to carry."""
    tasks = {asyncio.create_task(one), asyncio.create_task(other)}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()


def _is_established(end: asyncio.StreamWriter) -> bool:
    """Return the kernel's view: while a link is cut nothing is read, and the end of the stream would not be noticed."""
    established = 1
    try:
        state: int = end.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    except OSError:
        return False
    return state == established
