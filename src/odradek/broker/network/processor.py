"""The event loop: one thread, one selector, its share of the connections.

It reads frames, offers each to the application (`request_reader`), and sends the answers in the order of the requests
(`answer_writer`).

The holder of the processor's turn changes its connections: its own thread while it is awake. Other threads post
actions (`answer`, `mute`, `close`, `adopt`) and wake it if it sleeps. A peer processor's thread doesn't wake it: at
the end of its own event it takes the sleeper's turn and carries its posts out there. So an answer that one client's
request makes possible for another leaves without a switch of threads, of which a write to three replicas needs three;
and at once, before that request is done, where no other answer could leave with it.

A connection that belongs to another processor (`placement`) moves at the end of its owner's round, if the taker
sleeps: the owner's thread holds both turns, so no other thread changes anything of either meanwhile.
"""

import select
import threading
from collections.abc import Callable, Sequence
from functools import partial
from select import EPOLLERR, EPOLLHUP, EPOLLIN, EPOLLOUT, EPOLLRDHUP
from socket import socket
from threading import get_ident
from time import monotonic_ns
from typing import TYPE_CHECKING

from odradek.base.file_slice import Chunk
from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread
from odradek.broker.network.answer_writer import AnswerWriter
from odradek.broker.network.connection import READABLE, Accepted, Connection
from odradek.broker.network.connection_timeouts import ConnectionTimeouts
from odradek.broker.network.frame_memory import FrameMemory, SharedMemory
from odradek.broker.network.handshake_pool import HandshakePool
from odradek.broker.network.mailbox import Mailbox
from odradek.broker.network.muted_connections import NEVER_NS
from odradek.broker.network.placement import Placement
from odradek.broker.network.request import Application, InboundRequest
from odradek.broker.network.request_channel import RequestChannel
from odradek.broker.network.request_reader import RequestReader
from odradek.broker.network.settings import ServerSettings

if TYPE_CHECKING:
    from odradek.broker.network.tls_transport import TlsTransport

log = get_logger(__name__)

_EVENTS_MAX = 64  # of one call of the selector, which allocates room for all of them


class Processor:
    def __init__(
        self,
        name: str,
        settings: ServerSettings,
        application: Application,
        channel: RequestChannel,
        memory: SharedMemory,
        placement: Placement,
        peers: dict[int, "Processor"],
        handshakes: HandshakePool,
        on_closed: Callable[[Connection], None],
    ) -> None:
        """`peers` is shared by processors that may do each other's work: running processors, by thread."""
        self.name = name
        self._max_frame_bytes = settings.socket_request_max_bytes
        self._application = application
        self._memory = FrameMemory(memory)
        self._timeouts = ConnectionTimeouts(settings, self._memory)
        self._reader = RequestReader(
            settings, application, channel, self, self._memory, self._timeouts, self._close, self._set_interest
        )
        self._read = self._reader.read
        self._writer = AnswerWriter(self, self._reader, self._memory, self._close, self._set_interest)
        self._accept_answer = self._writer.accept
        self._flush, self._flush_dirty = self._writer.flush, self._writer.flush_dirty
        self._dirty = self._writer.dirty
        self._placement = placement
        self.tls_reads = self._reader.tls_reads
        self._peers = peers
        self._peers_with_posts: list[Processor] = []  # to which this thread posted an action
        self._handshakes = handshakes
        self._on_closed = on_closed
        self._connections: dict[int, Connection] = {}
        self._drain_until_ns: int | None = None
        self._turn = threading.Lock()  # given back while the thread sleeps
        self._sleeps_until_ns = NEVER_NS

        self._epoll = select.epoll()
        self._mailbox = Mailbox()
        self._post = self._mailbox.post
        self._epoll.register(self._mailbox.fd, EPOLLIN)
        self._thread = SupervisedThread(target=self._run, name=name)
        self._thread_ident = 0

    # -- any thread

    @property
    def connections(self) -> int:
        return len(self._connections)

    @property
    def requests(self) -> int:
        return self._reader.requests

    @property
    def bytes_in(self) -> int:
        return self._reader.bytes_in

    @property
    def held_bytes(self) -> int:
        return self._memory.held_bytes

    def start(self) -> None:
        self._writer.serves_light = self._placement.first is self
        self._thread.start()

    def drain(self, timeout_s: float) -> None:
        """Begin to stop: read nothing more, send the answers that come within the time, close."""
        self._post(self._begin_drain, monotonic_ns() + int(timeout_s * 1e9))

    def join(self) -> None:
        if self._thread.ident is None:
            self._epoll.close()
        else:
            self._thread.join()

    def adopt(self, accepted: Accepted) -> None:
        """Register a connection, on the acceptor's thread. Its first bytes wake the processor's thread."""
        connection = Connection(accepted, self, self._max_frame_bytes, monotonic_ns())
        if not self._do_if_asleep(self._register, connection, accepted.socket):
            self._post(self._register, connection, accepted.socket)

    def answer(self, request: InboundRequest, chunks: Sequence[Chunk] | None) -> None:
        thread = get_ident()
        if thread == self._thread_ident:
            self._accept_answer(request, chunks)
        elif (peer := self._peers.get(thread)) is not None:
            is_alone = len(request.connection.unanswered) == 1
            if is_alone and not self._mailbox.posts and self._do_if_asleep(self._accept_answer, request, chunks):
                return
            self._mailbox.leave(self._accept_answer, request, chunks)
            if is_alone:
                self._run_posts_if_asleep()
            else:
                peer._peers_with_posts.append(self)
        else:
            self._post(self._accept_answer, request, chunks)

    def mute(self, connection: Connection, until_ns: int) -> None:
        self._do(self._mute, connection, until_ns)

    def close(self, connection: Connection, reason: str) -> None:
        self._do(self._close_as_owner, connection, reason)

    def _run_handshake_step(self, connection: Connection, transport: "TlsTransport") -> None:
        transport.do_step()
        if not self._do_if_asleep(self._handshake_stepped, connection, transport):
            self._post(self._handshake_stepped, connection, transport)

    def _do(self, action: Callable[..., None], *arguments: object) -> None:
        if get_ident() == self._thread_ident:
            action(*arguments)
        else:
            self._post(action, *arguments)

    def close_least_recently_active(self) -> None:
        """Make room for a connection on a listener that may not be refused."""
        self._post(self._close_least_recently_active)

    def retry(self) -> None:
        """The handlers' queue has room again."""
        self._post(self._reader.offer_refused)

    def _run_posts_if_asleep(self) -> None:
        """Run the posted actions on the thread of the peer that posted them, unless this thread is awake."""
        mailbox = self._mailbox
        if not mailbox.posts:
            return
        if mailbox.is_closed or (mailbox.owner_sleeps and not self._do_if_asleep(mailbox.run_posted)):
            mailbox.wake()

    def _do_if_asleep(self, action: Callable[..., None], *arguments: object) -> bool:
        """Carry out an action on the thread of a peer that has taken the turn; False: this thread has it."""
        if not self._turn.acquire(blocking=False):
            return False
        try:
            self._reader.now_ns = monotonic_ns()
            action(*arguments)
            if self._dirty:
                self._flush_dirty()
            oversleeps = self._reader.due_ns() < self._sleeps_until_ns
        finally:
            self._turn.release()
        if oversleeps:
            self._mailbox.wake()
        return True

    # -- the holder of the turn: all methods below

    def _run(self) -> None:
        self._thread_ident = get_ident()
        self._peers[self._thread_ident] = self
        self._turn.acquire()
        reader, writer, mailbox, timeouts = self._reader, self._writer, self._mailbox, self._timeouts
        muted, posts = reader.muted, mailbox.posts
        with self._application.rounds() as end_round:
            while self._drain_until_ns is None or not self._drained(self._drain_until_ns):
                for fd, event in self._poll():
                    try:
                        self._handle_event(fd, event)
                    except Exception as error:
                        self._end_failed(fd, error)
                if posts:
                    mailbox.run_posted()
                    self._send_answers()
                now_ns = reader.now_ns
                if now_ns >= muted.next_end_ns:
                    reader.unmute()
                if reader.resumable or reader.starved:
                    reader.resume(self._send_answers)
                if now_ns >= timeouts.next_look_ns:
                    for connection, reason in timeouts.overdue(self._connections.values(), now_ns):
                        self._close(connection, reason)
                end_round()
                if self._dirty or self._peers_with_posts:
                    self._send_answers()
                if writer.misplaced:
                    self._move_misplaced()
        for connection in list(self._connections.values()):
            self._close(connection, "the broker stops")
        del self._peers[self._thread_ident]
        self._mailbox.close()  # answers for connections that have moved are passed on
        self._epoll.close()

    def _poll(self) -> list[tuple[int, int]]:
        reader, mailbox = self._reader, self._mailbox
        reader.now_ns = began_ns = monotonic_ns()
        self._sleeps_until_ns = until_ns = reader.due_ns()
        mailbox.owner_sleeps = True
        timeout_s = 0.0 if mailbox.posts else -1 if until_ns == NEVER_NS else max(0, until_ns - began_ns) / 1e9
        self._turn.release()
        events = self._epoll.poll(timeout_s, _EVENTS_MAX)
        self._turn.acquire()
        mailbox.owner_sleeps = False
        reader.now_ns = monotonic_ns()
        return events

    def _handle_event(self, fd: int, event: int) -> None:
        connection = self._connections.get(fd)
        if connection is None:
            if fd == self._mailbox.fd:
                self._mailbox.acknowledge()
            return
        if event == EPOLLIN:  # as it nearly always is
            self._read(connection)
        else:
            if event & EPOLLIN:
                if event & EPOLLRDHUP:
                    connection.peer_closed = True
                self._read(connection)
            elif event & (EPOLLERR | EPOLLHUP):
                self._close(connection, "the client is gone")
            if event & EPOLLOUT:
                self._flush(connection)
        if self._dirty or self._peers_with_posts:
            self._send_answers()

    def _register(self, connection: Connection, connected: socket) -> None:
        self._connections[connection.fd] = connection
        try:
            connected.setblocking(False)
            self._epoll.register(connection.fd, READABLE)
        except OSError as error:
            self._close(connection, error.strerror)
            return
        if (displaced := self._timeouts.connected(connection, self._reader.now_ns)) is not None:
            self._close(displaced, "too many connections are not authenticated, and it was the oldest")

    # moving

    def _move_misplaced(self) -> None:
        """Move each connection if it can move and its taker sleeps; otherwise its next answer tries again. No work in
        progress of this thread uses them any more."""
        writer = self._writer
        misplaced, writer.misplaced = writer.misplaced, []
        for connection in misplaced:
            if connection.owner is not self or connection.closed or not self._reader.is_settled(connection):
                continue
            taker = self._placement.of(connection)
            if taker is not self:
                taker._do_if_asleep(taker._take_over, connection, self)

    def _take_over(self, connection: Connection, giver: "Processor") -> None:
        """Take a connection, on the giver's thread, which holds both turns. The giver passes later posts for it on."""
        giver._epoll.unregister(connection.fd)
        del giver._connections[connection.fd]
        giver._timeouts.left(connection)
        giver._memory.give(self._memory, connection)
        connection.owner = self
        self._connections[connection.fd] = connection
        self._timeouts.taken_over(connection)
        try:
            self._epoll.register(connection.fd, connection.interest)
        except OSError as error:
            self._close(connection, error.strerror)

    # TLS handshakes

    def begin_handshake_step(self, connection: Connection, transport: "TlsTransport") -> None:
        """Have a step carried out by the pool; nothing is read from the connection meanwhile."""
        connection.delegated = InboundRequest(connection, bytearray(), self._reader.now_ns)
        self._handshakes.submit(connection.client_host, partial(self._run_handshake_step, connection, transport))

    def _handshake_stepped(self, connection: Connection, transport: "TlsTransport") -> None:
        if connection.closed:
            return
        connection.delegated = None
        try:
            transport.end_step()
        except BlockingIOError:
            if transport.wants_write:
                self._set_interest(connection, connection.interest | EPOLLOUT)
        except OSError as error:
            self._close(connection, error.strerror)
            return
        self._reader.go_on(connection)

    def _send_answers(self) -> None:
        self._flush_dirty()
        while self._peers_with_posts:
            self._peers_with_posts.pop()._run_posts_if_asleep()

    def _mute(self, connection: Connection, until_ns: int) -> None:
        if connection.owner is self:
            self._reader.muted.add(connection, until_ns)
        else:
            connection.owner.mute(connection, until_ns)

    def _set_interest(self, connection: Connection, interest: int) -> None:
        connection.interest = interest
        self._epoll.modify(connection.fd, interest)

    # closing

    def _close(self, connection: Connection, reason: str | None) -> None:
        """`reason` is None if the client closed the connection; then nothing is logged."""
        if connection.closed:
            return
        connection.closed = True
        if reason is not None:
            log.info("connection closed", connection=connection.id, reason=reason)
        del self._connections[connection.fd]
        self._reader.closed(connection)
        others = self._timeouts.closed(connection)
        try:
            connection.socket.close()
            self._on_closed(connection)
        except Exception:
            log.exception("connection failed as it was closed", connection=connection.id)
        for other in others:
            self._close(other, "its client held up others")

    def _end_failed(self, fd: int, error: Exception) -> None:
        """Close a connection after an unexpected exception, which must not end the other connections."""
        if fd == self._mailbox.fd:
            raise error
        log.exception("connection failed", fd=fd)
        if (connection := self._connections.get(fd)) is not None:
            self._close(connection, "it failed")

    def _close_as_owner(self, connection: Connection, reason: str) -> None:
        if connection.owner is self:
            self._close(connection, reason)
        else:
            connection.owner.close(connection, reason)

    def _close_least_recently_active(self) -> None:
        if self._connections:
            oldest = min(self._connections.values(), key=lambda connection: connection.last_active_ns)
            self._close(oldest, "too many connections, and it was the least recently active")

    # stopping

    def _begin_drain(self, until_ns: int) -> None:
        self._drain_until_ns = until_ns
        self._reader.is_draining = True

    def _drained(self, until_ns: int) -> bool:
        return self._reader.now_ns >= until_ns or not any(
            connection.unanswered or connection.outbox for connection in self._connections.values()
        )
