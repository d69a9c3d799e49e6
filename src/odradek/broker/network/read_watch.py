"""Watch over the reads of TLS connections, which must not last long.

OpenSSL returns from a read when it has data for its caller or nothing has come. A client that sends messages of the
protocol alone, KeyUpdate in TLS 1.3 or renegotiations in 1.2, which are refused, as fast as they are handled, keeps its
network thread inside of one read for as long as it likes, without any login; and Python can't have it return earlier.
So a thread looks at the reads. A connection whose read is found again, and has cost processor time since, is
disconnected, and so is one of which two reads took long and brought nothing (`tls_transport`). Its client loses
its connections that are not logged in, and its address counts as one whose logins failed too often.
"""

import threading
from collections.abc import Callable, Iterable
from time import clock_gettime_ns, pthread_getcpuclockid
from typing import Protocol

from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread

log = get_logger(__name__)

LOOK_S = 0.2
READ_NS_MAX = 50_000_000
"""Processor time, of which nothing passes while the process or the machine stands still."""


class WatchedTransport(Protocol):
    def cut(self) -> None:
        """End the connection from another thread."""


class WatchedReads:
    """The reads of one processor's TLS connections, one after the other, all on its thread."""

    __slots__ = ("clock", "number", "transport")

    def __init__(self) -> None:
        self.number = 0
        """Grows with each read."""
        self.transport: WatchedTransport | None = None
        """The one that is being read."""
        self.clock: int | None = None
        """Clock of the processor time of the thread."""

    def begin(self, transport: WatchedTransport) -> None:
        if self.clock is None:
            self.clock = pthread_getcpuclockid(threading.get_ident())
        self.number += 1
        self.transport = transport


class ReadWatch:
    def __init__(self, watched: Callable[[], Iterable[WatchedReads]]) -> None:
        """`watched`: those of the processors that there are."""
        self._watched = watched
        self._found: dict[WatchedReads, tuple[int, int]] = {}
        """Number of the read that was found, and the time of its thread then."""
        self._stopping = threading.Event()
        self._thread = SupervisedThread(target=self._run, name="read-watch")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def look(self) -> None:
        found: dict[WatchedReads, tuple[int, int]] = {}
        for reads in self._watched():
            number, transport = reads.number, reads.transport
            if transport is None or reads.clock is None:
                continue
            now_ns = clock_gettime_ns(reads.clock)
            last, first_ns = self._found.get(reads, (-1, 0))
            found[reads] = number, first_ns if last == number else now_ns
            if now_ns - found[reads][1] > READ_NS_MAX and reads.number == number:
                log.warning("TLS connection ended: it sends no data, never stops, and held up others")
                transport.cut()
        self._found = found

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_S):
            self.look()
