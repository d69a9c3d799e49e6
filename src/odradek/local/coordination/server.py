"""The coordination server: one thread, one selector.

A turn of its loop reads what clients have sent and performs it in memory, writes and syncs the transactions that came
of it (group commit: one sync for all of them), and only then sends answers and notifications. So nothing is seen that a
crash could take back. A log that can't be written ends the server.
"""

import contextlib
import selectors
import socket
import time

from odradek.base.errors import FatalError
from odradek.base.logs import get_logger
from odradek.local.coordination.connection import Connection, Disconnected
from odradek.local.coordination.core import jute
from odradek.local.coordination.core.acl import Identity
from odradek.local.coordination.core.coordinator import Step
from odradek.local.coordination.core.jute import MarshallingError, Reader
from odradek.local.coordination.core.reads import Caller
from odradek.local.coordination.session_ids import SessionIds
from odradek.local.coordination.settings import ServerSettings
from odradek.local.coordination.storage import Storage
from odradek.local.coordination.words import KNOWN, Answers, Traffic

_log = get_logger(__name__)

_BACKLOG = 100
_CONNECTIONS_MAX = 900
_SESSIONLESS_MS = 10_000
_CONTAINERS_MS = 60_000
_WAIT_SECONDS_MAX = 10.0
_NO_PASSWORD = bytes(16)


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class CoordinationServer:
    """`start` recovers and listens, `run` serves until `stop`, which any thread and any signal handler may call."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._storage = Storage(settings.data_dir)
        self._selector = selectors.DefaultSelector()
        self._connections: dict[int, Connection] = {}
        self._by_session: dict[int, Connection] = {}
        self._dirty: dict[int, Connection] = {}
        """Connections with frames of this turn, or that end with it."""
        self._sessionless: dict[int, Connection] = {}
        self._paused: dict[int, Connection] = {}
        """Connections with requests that wait for room for their answers."""
        self._traffic = Traffic()
        self._numbers = 0
        self._stopping = False
        self._containers_due_ms = _now_ms() + _CONTAINERS_MS
        self._waker, self._wakened = socket.socketpair()

    def start(self) -> None:
        settings = self._settings
        self._coordinator = self._storage.recover(settings.tick_ms, _now_ms())
        self._session_ids = SessionIds(settings.data_dir, _wall_ms())
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listener.bind((settings.host, settings.port))
        except OSError as error:
            raise FatalError(f"{settings.host}:{settings.port}: {error.strerror}") from error
        self._listener.listen(_BACKLOG)
        for listening in (self._listener, self._wakened):
            listening.setblocking(False)
            self._selector.register(listening, selectors.EVENT_READ)
        _log.info("serving", host=settings.host, port=settings.port)

    def stop(self) -> None:
        self._stopping = True
        with contextlib.suppress(OSError):
            self._waker.send(b"\0")

    def run(self) -> None:
        try:
            while not self._stopping:
                self._turn()
            self._storage.log.roll()
        finally:
            for connection in list(self._connections.values()):
                self._drop(connection, "server stopped")
            for ending in (self._listener, self._waker, self._wakened):
                ending.close()
            self._selector.close()

    def _turn(self) -> None:
        ready = self._selector.select(self._wait_seconds())
        began = time.monotonic()
        requests = self._traffic.received
        for key, events in ready:
            if key.fileobj is self._listener:
                self._accept()
            elif key.data is not None:
                self._dirty[key.data.number] = key.data
                if events & selectors.EVENT_READ:
                    self._receive(key.data)
        for connection in [c for c in self._paused.values() if c.may_read]:
            del self._paused[connection.number]
            self._serve(connection)
        self._expire()
        self._storage.commit()
        for connection in self._dirty.values():
            self._send(connection)
        self._dirty = {}
        if served := self._traffic.received - requests:
            self._traffic.add(served, (time.monotonic() - began) * 1000)
        self._storage.snapshot_if_due(self._coordinator)

    def _wait_seconds(self) -> float:
        if any(connection.may_read for connection in self._paused.values()):
            return 0.0
        due = self._coordinator.sessions.next_expiry_ms()
        sessionless = [connection.deadline_ms for connection in self._sessionless.values()]
        moments = [*sessionless, self._containers_due_ms, *([] if due is None else [due])]
        return min(max(0.0, (min(moments) - _now_ms()) / 1000), _WAIT_SECONDS_MAX)

    def _accept(self) -> None:
        try:
            peer, address = self._listener.accept()
        except OSError:
            return
        if len(self._connections) >= _CONNECTIONS_MAX:
            _log.warning("connection refused: too many", host=address[0], connections=len(self._connections))
            peer.close()
            return
        peer.setblocking(False)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._numbers += 1
        connection = Connection(self._numbers, peer, address, _now_ms() + _SESSIONLESS_MS)
        self._connections[connection.number] = self._sessionless[connection.number] = connection
        self._selector.register(peer, selectors.EVENT_READ, connection)
        connection.is_registered_for = selectors.EVENT_READ

    def _receive(self, connection: Connection) -> None:
        try:
            connection.read()
        except Disconnected as reason:
            self._drop(connection, str(reason))
            return
        word = connection.first_word().decode("latin-1")
        if word in KNOWN and not connection.is_closing:
            self._answer_word(connection, word)
        else:
            self._serve(connection)

    def _serve(self, connection: Connection) -> None:
        self._dirty[connection.number] = connection
        try:
            for frame in connection.frames():
                self._traffic.received += 1
                if connection.caller is None:
                    self._connect(connection, frame)
                else:
                    self._request(connection, connection.caller, frame)
        except (Disconnected, MarshallingError) as reason:
            self._drop(connection, str(reason))
            return
        if not connection.is_closing and connection.has_frame:
            self._paused[connection.number] = connection

    def _answer_word(self, connection: Connection, word: str) -> None:
        clients = tuple(
            f"/{c.host}:{c.port}[1](queued=0,recved={c.received},sent={c.sent})"
            for c in self._connections.values()
            if not c.is_closing
        )
        self._traffic.connections = len(self._connections)
        answers = Answers(self._settings, self._coordinator, self._traffic, clients)
        connection.queue(answers.to(word).encode())
        connection.is_closing = True

    def _connect(self, connection: Connection, frame: bytes) -> None:
        """A new session, or one that is taken up again."""
        reader = Reader(frame)
        reader.int32()
        seen_zxid, wanted_ms, session_id = reader.int64(), reader.int32(), reader.int64()
        password, knows_read_only = reader.buffer() or b"", reader.remaining > 0
        if seen_zxid > self._coordinator.last_zxid:
            raise Disconnected(f"the client has seen zxid 0x{seen_zxid:x}, which this server doesn't have")
        settings, coordinator, now_ms = self._settings, self._coordinator, _now_ms()
        timeout_ms = min(max(wanted_ms, settings.session_timeout_ms_min), settings.session_timeout_ms_max)
        if session_id == 0:
            session_id = self._session_ids.next(coordinator.sessions)
            self._perform(coordinator.open_session(session_id, timeout_ms, now_ms, _wall_ms()))
        elif not self._session_ids.is_password(session_id, password) or not coordinator.sessions.touch(
            session_id, timeout_ms, now_ms
        ):
            connection.queue(_connect_response(0, 0, _NO_PASSWORD, knows_read_only))
            connection.is_closing = True
            return
        elif former := self._by_session.get(session_id):
            self._drop(former, "its session has moved to another connection")
        connection.timeout_ms = timeout_ms
        connection.caller = Caller(connection.number, session_id, [Identity("ip", connection.host)])
        coordinator.connect(connection.caller)
        self._sessionless.pop(connection.number)
        self._by_session[session_id] = connection
        secret = self._session_ids.password(session_id)
        connection.queue(_connect_response(timeout_ms, session_id, secret, knows_read_only))
        self._traffic.sent += 1

    def _request(self, connection: Connection, caller: Caller, frame: bytes) -> None:
        self._coordinator.sessions.touch(caller.session_id, connection.timeout_ms, _now_ms())
        step = self._coordinator.handle(caller, frame, _wall_ms())
        self._perform(step)
        if step.close:
            connection.is_closing = True

    def _perform(self, step: Step) -> None:
        """Append the transactions and queue the frames, which leave at the end of the turn, when the log is synced."""
        for logged in step.logged:
            self._storage.log.append(logged)
        for number, frame in step.frames:
            connection = self._connections.get(number)
            if connection is not None:
                connection.queue(frame)
                self._dirty[number] = connection
                self._traffic.sent += 1

    def _expire(self) -> None:
        """Expire sessions, after all reading: a client that was heard in time stays, however long this server was
        held up."""
        now_ms = _now_ms()
        expired = list(self._coordinator.sessions.expired(now_ms))
        # The process may have been stopped since it read: who has sent something meanwhile is heard in the next turn.
        unread = {
            key.data.number
            for key, events in (self._selector.select(0) if expired else ())
            if key.data is not None and events & selectors.EVENT_READ
        }
        for session_id in expired:
            connection = self._by_session.get(session_id)
            if connection is not None and connection.number in unread:
                continue
            _log.info("session expired", session=f"0x{session_id:x}")
            self._perform(self._coordinator.close_session(session_id, _wall_ms()))
            if connection is not None:
                self._drop(connection, "its session has expired")
        for connection in list(self._sessionless.values()):
            if connection.deadline_ms <= now_ms:
                self._drop(connection, "no session was asked for")
        if self._containers_due_ms <= now_ms:
            self._containers_due_ms = now_ms + _CONTAINERS_MS
            self._perform(self._coordinator.delete_containers(_wall_ms()))

    def _send(self, connection: Connection) -> None:
        if connection.number not in self._connections:
            return
        try:
            connection.flush()
        except Disconnected as reason:
            self._drop(connection, str(reason))
            return
        if connection.is_closing and not connection.has_unsent:
            self._drop(connection, "closed")
            return
        wanted = selectors.EVENT_READ if connection.may_read else 0
        wanted |= selectors.EVENT_WRITE if connection.has_unsent else 0
        if wanted != connection.is_registered_for:
            self._selector.modify(connection.socket, wanted, connection)
            connection.is_registered_for = wanted

    def _drop(self, connection: Connection, reason: str) -> None:
        if self._connections.pop(connection.number, None) is None:
            return
        _log.debug("connection closed", host=connection.host, reason=reason)
        self._selector.unregister(connection.socket)
        connection.socket.close()
        self._coordinator.disconnect(connection.number)
        for kept in (self._sessionless, self._paused):
            kept.pop(connection.number, None)
        caller = connection.caller
        if caller is not None and self._by_session.get(caller.session_id) is connection:
            del self._by_session[caller.session_id]


def _connect_response(timeout_ms: int, session_id: int, password: bytes, knows_read_only: bool) -> bytes:
    body = jute.int32(0) + jute.int32(timeout_ms) + jute.int64(session_id) + jute.buffer(password)
    return jute.buffer(body + (jute.boolean(False) if knows_read_only else b""))
