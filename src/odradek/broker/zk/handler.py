"""Event handler of kazoo: many requests in one write, many answers in one read.

kazoo sends and reads message by message, asks `select` before each step and wakes its thread by one byte per request.
A pipeline of a thousand requests makes ten thousand such calls. kazoo lets its handler make the sockets and the
`select`, so this one makes sockets that collect writes until kazoo has nothing left to do, buffer reads beyond one
message, and wake the thread once. Used by `session` alone; everything but `_Wakeups.send` runs on kazoo's connection
thread.
"""

import select
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler

from odradek.base.errors import ConfigError
from odradek.base.logs import get_logger

log = get_logger(__name__)

_CHUNK_BYTES = 1 << 16
_WAITING = (ssl.SSLWantReadError, ssl.SSLWantWriteError)


class _GatheringSocket:
    """A connection. Writes wait in memory for `flush`; one read takes all that has arrived."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._connection.setblocking(False)
        self._unsent = bytearray()
        self._unread = memoryview(b"")
        self.was_answered = False

    def fill(self) -> bool:
        """Return whether a read has data, now that the connection is readable."""
        return True

    def setblocking(self, flag: bool) -> None:
        """Always non-blocking: kazoo asks `select` first."""

    def fileno(self) -> int:
        return self._connection.fileno()

    def close(self) -> None:
        self._connection.close()

    @property
    def has_unread(self) -> bool:
        return len(self._unread) > 0

    def recv(self, count: int) -> bytes:
        if not self._unread:
            self._unread = memoryview(self._connection.recv(_CHUNK_BYTES))
            self.was_answered = True
        taken, self._unread = self._unread[:count], self._unread[count:]
        return bytes(taken)

    def send(self, message: Any) -> int:
        self._unsent += message
        if len(self._unsent) >= _CHUNK_BYTES:
            self.flush()
        return len(message)

    def flush(self) -> bool:
        """Write as much as the connection takes now; return whether that was all."""
        try:
            while self._unsent:
                del self._unsent[: self._connection.send(self._unsent)]
        except BlockingIOError:
            return False
        return True


class _GatheringTlsSocket(_GatheringSocket):
    """A connection with TLS. A readable connection may have a record that is none of ZooKeeper's, or half of one."""

    _is_over = False

    @property
    def has_unread(self) -> bool:
        return len(self._unread) > 0 or self._is_over or self._connection.pending() > 0  # type: ignore[attr-defined]

    def fill(self) -> bool:
        if not self._unread and not self._is_over:
            try:
                self._unread = memoryview(self._connection.recv(_CHUNK_BYTES))
            except _WAITING:
                return False
            self.was_answered = True
            self._is_over = not self._unread
        return True

    def recv(self, count: int) -> bytes:
        if not self.fill():
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ)  # kazoo asks `select` again
        taken, self._unread = self._unread[:count], self._unread[count:]
        return bytes(taken)

    def flush(self) -> bool:
        try:
            return super().flush()
        except _WAITING:
            return False


class _Wakeups:
    """Both ends of kazoo's socket pair: as many bytes as there are requests, of which only the first is real."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._lock = threading.Lock()
        self._count = 0

    def fileno(self) -> int:
        return self._reader.fileno()

    def close(self) -> None:
        """Close both ends; called once for each."""
        with self._lock:
            self._count = 0
            self._reader.close()
            self._writer.close()

    @property
    def has_unread(self) -> bool:
        return self._count > 0

    def send(self, byte: bytes) -> int:
        with self._lock:
            if self._count == 0:
                self._writer.send(byte)
            self._count += 1
        return 1

    def recv(self, count: int) -> bytes:
        with self._lock:
            if self._count == 0:
                raise BlockingIOError("nobody called")
            self._count -= 1
            return self._reader.recv(1) if self._count == 0 else b"\0"


class PipeliningHandler(SequentialThreadingHandler):  # type: ignore[misc]
    connect_seconds_max = 30.0
    """Time that one server may take to accept a session. A server that just starts may have lost the request; while it
    is waited for, the session must not expire."""

    def __init__(self, tls: Mapping[str, str] | None = None) -> None:
        """`tls`: settings of a client, `ssl.*`. Its files are read for each connection, so that they can change."""
        super().__init__()
        self._tls = tls
        self._last_failure = ""

    def create_connection(self, *args: Any, timeout: float, hostname: str | None = None, **kwargs: Any) -> Any:
        seconds = min(timeout, self.connect_seconds_max)
        connection = super().create_connection(*args, timeout=seconds, hostname=hostname, **kwargs)
        if self._tls is None:
            return _GatheringSocket(connection)
        connection.settimeout(seconds)
        try:
            return _GatheringTlsSocket(_with_tls(connection, self._tls, hostname))
        except OSError as error:
            if str(error) != self._last_failure:  # it is tried again and again
                self._last_failure = str(error)
                log.error("TLS with ZooKeeper failed", host=hostname, reason=str(error))
            raise

    def create_socket_pair(self) -> tuple[_Wakeups, _Wakeups]:
        wakeups = _Wakeups()
        return wakeups, wakeups

    def select(
        self, readers: Sequence[Any], writers: Sequence[Any], _: Sequence[Any], timeout: float | None = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Select among the descriptors: ready ones first, without a system call; only then gathered writes leave, and
        it waits."""
        if writers and all(isinstance(writer, _GatheringSocket) for writer in writers):
            return [], list(writers), []
        if ready := [reader for reader in readers if getattr(reader, "has_unread", False)]:
            return ready, [], []
        if timeout is not None and any(isinstance(r, _GatheringSocket) and not r.was_answered for r in readers):
            timeout = min(timeout, self.connect_seconds_max)
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            gathering = [reader for reader in readers if isinstance(reader, _GatheringSocket) and not reader.flush()]
            found = _poll(readers, [*writers, *gathering], deadline)
            readable = [
                reader
                for reader in readers
                if found.get(reader.fileno(), 0) & ~select.POLLOUT
                and (not isinstance(reader, _GatheringSocket) or reader.fill())
            ]
            writable = [writer for writer in writers if writer.fileno() in found]
            # kazoo need not know that collected writes can leave now
            if readable or writable or not found:
                return readable, writable, []


def _with_tls(connection: socket.socket, settings: Mapping[str, str], hostname: str | None) -> socket.socket:
    from odradek.security.tls_contexts import client_context

    try:
        return client_context(settings).wrap_socket(connection, server_hostname=hostname)
    except (OSError, ConfigError) as error:
        connection.close()
        detail = getattr(error, "verify_message", None) or getattr(error, "reason", None) or error
        raise OSError(str(detail)) from None


def _poll(readers: Sequence[Any], writers: Sequence[Any], deadline: float | None) -> dict[int, int]:
    poll = select.poll()
    wanted = {reader.fileno(): select.POLLIN for reader in readers}
    for writer in writers:
        wanted[writer.fileno()] = wanted.get(writer.fileno(), 0) | select.POLLOUT
    for descriptor, events in wanted.items():
        poll.register(descriptor, events)
    return dict(poll.poll(None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000))
