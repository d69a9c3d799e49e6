"""Carries bytes between brokers, and between brokers and ZooKeeper, over links that can be cut.

A cut link is a broken switch: connections stay open and go silent, new ones are made and answered by nobody. When it is
healed, what was sent meanwhile arrives, as TCP would have it.
"""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from pathlib import Path

from odradek.local.links.cuts import Cuts, Node, is_cut, read_cuts
from odradek.local.links.plan import Plan
from odradek.local.links.socket_owner import owner

_LOOK_SECONDS = 0.1
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


class Relay:
    def __init__(self, plan: Plan, cuts_file: Path, pids: Callable[[], Iterable[tuple[int, int]]]) -> None:
        self._plan = plan
        self._cuts_file = cuts_file
        self._pids = pids
        self._cuts: Cuts = {}
        self._lines: dict[tuple[int | None, Node], _Line] = {}
        self._connections = 0

    async def run(self) -> None:
        self._cuts = read_cuts(self._cuts_file)
        nodes: list[tuple[Node, int, str]] = [(None, link.port, link.target) for link in self._plan.servers]
        nodes += [(broker, link.port, link.target) for broker, link in self._plan.brokers.items()]
        for node, port, target in nodes:
            await asyncio.start_server(partial(self._serve, node, target), _HOST, port, limit=_CHUNK_BYTES)
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            cuts = read_cuts(self._cuts_file)
            if cuts != self._cuts:
                self._cuts = cuts
                for line in self._lines.values():
                    line.apply(cuts)

    async def _serve(self, node: Node, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        far: asyncio.StreamWriter | None = None
        try:
            if self._connections > _CONNECTIONS_MAX:
                return
            line = self._line(writer, node)
            if await line.lets_through(writer):
                host, _, port = target.rpartition(":")
                far_reader, far = await asyncio.open_connection(host, int(port), limit=_CHUNK_BYTES)
                await _both(_copy(line, reader, writer, far), _copy(line, far_reader, writer, writer))
        except OSError:
            pass  # one side is gone; so is the connection
        finally:
            self._connections -= 1
            for end in (writer, far):
                if end is not None:
                    end.close()

    def _line(self, writer: asyncio.StreamWriter, node: Node) -> _Line:
        here, peer = writer.get_extra_info("sockname")[1], writer.get_extra_info("peername")[1]
        source = owner(here, peer, self._pids())
        line = self._lines.get((source, node))
        if line is None:
            line = self._lines[source, node] = _Line(source, node)
            line.apply(self._cuts)
        return line


async def _copy(
    line: _Line, reader: asyncio.StreamReader, source_end: asyncio.StreamWriter, to: asyncio.StreamWriter
) -> None:
    while await line.lets_through(source_end):
        data = await reader.read(_CHUNK_BYTES)
        if not data or not await line.lets_through(source_end):
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
