"""The event loop: one thread, one selector, its share of the connections.

It reads frames, offers each to the application, and sends the answers in the order of the requests.

The holder of the processor's turn changes its connections: its own thread while it is awake. Other threads post
actions (`answer`, `release`, `close`, `adopt`) and wake it if it sleeps. A peer processor's thread doesn't wake it: at
the end of its own event it takes the sleeper's turn and carries its posts out there. So an answer that one client's
request makes possible for another leaves without a switch of threads, of which a write to three replicas needs three;
and at once, before that request is done, where no other answer could leave with it.

Reading stops, and with it the client, while
  - a handler thread has one of the connection's requests (or the handlers' queue is full),
  - its client has used more than it may, and is muted,
  - too many of its requests wait for their answers, or too many bytes of answers wait to be sent,
  - its next frame is large and the memory for requests is used up.
"""

import select
import threading
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic_ns

from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread
from odradek.broker.network.connection import READABLE, Accepted, Connection
from odradek.broker.network.connection_timeouts import ConnectionTimeouts
from odradek.broker.network.frame_memory import FrameMemory, SharedMemory
from odradek.broker.network.frame_reader import EndOfStream, InvalidFrame, Scratch
from odradek.broker.network.mailbox import Mailbox
from odradek.broker.network.muted_connections import NEVER_NS, MutedConnections
from odradek.broker.network.outbox import Outbox, SliceTruncated
from odradek.broker.network.request import NO_FRAME, Application, Chunk, InboundRequest
from odradek.broker.network.request_channel import RequestChannel
from odradek.broker.network.settings import ServerSettings

log = get_logger(__name__)

_SCRATCH_BYTES = 128 << 10
_RETRY_NS = 20_000_000
_TURN_NS = 20_000_000


class Processor:
    def __init__(
        self,
        name: str,
        settings: ServerSettings,
        application: Application,
        channel: RequestChannel,
        memory: SharedMemory,
        colleagues: dict[int, "Processor"],
        on_closed: Callable[[Connection], None],
    ) -> None:
        """`colleagues` is shared by processors that may do each other's work: running processors, by thread."""
        self.name = name
        self.accepted = self.closed = 0
        self.bytes_in = self.bytes_out = self.requests = self.idle_ns = 0
        self._max_frame_bytes = settings.socket_request_max_bytes
        self._max_unanswered = settings.max_unanswered_per_connection
        self._max_unsent_bytes = settings.max_unsent_bytes_per_connection
        self._begin = application.begin
        self._end_turn = application.end_turn
        self._channel = channel
        self._memory = FrameMemory(memory)
        self._patience = ConnectionTimeouts(settings, self._memory)
        self._colleagues = colleagues
        self._to_visit: list[Processor] = []  # colleagues for whom something was left
        self._on_closed = on_closed
        self._scratch = Scratch(_SCRATCH_BYTES)
        self._connections: dict[int, Connection] = {}
        self._dirty: list[Connection] = []  # have answers to send
        self._resumable: list[Connection] = []  # have unread frames that may begin
        self._refused: deque[InboundRequest] = deque()  # wait for room in the handlers' queue
        self._starved: list[Connection] = []  # wait for room in the request memory
        self._serving: Connection | None = None  # whose requests were begun last
        self._now_ns = monotonic_ns()
        self._muted = MutedConnections()
        self._drain_until_ns: int | None = None
        self._turn = threading.Lock()  # given back while the thread sleeps
        self._sleeps_until_ns = NEVER_NS

        self._epoll = select.epoll()
        self._mailbox = Mailbox()
        self._post = self._mailbox.post
        self._epoll.register(self._mailbox.fd, select.EPOLLIN)
        self._thread = SupervisedThread(target=self._run, name=name)
        self._thread_ident = 0

    # -- any thread

    @property
    def connections(self) -> int:
        return len(self._connections)

    @property
    def held_bytes(self) -> int:
        return self._memory.held_bytes

    def start(self) -> None:
        self._thread.start()

    def drain(self, timeout_s: float) -> None:
        """Begin to stop: read nothing more, send the answers that come within the time, close."""
        self._post(setattr, self, "_drain_until_ns", monotonic_ns() + int(timeout_s * 1e9))

    def join(self) -> None:
        if self._thread.ident is None:
            self._epoll.close()
        else:
            self._thread.join()

    def adopt(self, accepted: Accepted) -> None:
        self._post(self._register, accepted)

    def answer(self, request: InboundRequest, chunks: Sequence[Chunk] | None) -> None:
        thread = threading.get_ident()
        if thread == self._thread_ident:
            self._accept_answer(request, chunks)
        elif (colleague := self._colleagues.get(thread)) is not None:
            self._mailbox.leave(self._accept_answer, request, chunks)
            if len(request.connection.unanswered) == 1:
                self._visit()
            else:
                colleague._to_visit.append(self)
        else:
            self._post(self._accept_answer, request, chunks)

    def release(self, request: InboundRequest) -> None:
        self._do(self._memory.release, request)

    def mute(self, connection: Connection, until_ns: int) -> None:
        self._do(self._muted.add, connection, until_ns)

    def close(self, connection: Connection, reason: str) -> None:
        self._do(self._close, connection, reason)

    def _do(self, action: Callable[..., None], *arguments: object) -> None:
        if threading.get_ident() == self._thread_ident:
            action(*arguments)
        else:
            self._post(action, *arguments)

    def close_least_recently_active(self) -> None:
        """Make room for a connection on a listener that may not be refused."""
        self._post(self._close_least_recently_active)

    def retry(self) -> None:
        """The handlers' queue has room again."""
        self._post(self._offer_refused)

    def _visit(self) -> None:
        """By a colleague who has left something: do it, unless the thread is awake and will, or somebody else does."""
        mailbox = self._mailbox
        if not (mailbox and mailbox.owner_sleeps):
            return
        if not self._turn.acquire(blocking=False):
            mailbox.wake()
            return
        try:
            self._now_ns = monotonic_ns()
            mailbox.run_posted()
            self._flush_dirty()
            oversleeps = self._due_ns() < self._sleeps_until_ns
        finally:
            self._turn.release()
        if oversleeps:
            mailbox.wake()

    # -- whoever has the turn, from here to the end

    def _run(self) -> None:
        self._thread_ident = threading.get_ident()
        self._colleagues[self._thread_ident] = self
        self._turn.acquire()
        while self._drain_until_ns is None or not self._drained(self._drain_until_ns):
            for fd, event in self._poll():
                self._handle_event(fd, event)
            if self._mailbox:
                self._mailbox.run_posted()
                self._send_answers()
            if self._resumable or self._starved:
                self._resume()
            if self._now_ns >= self._muted.next_end_ns:
                self._unmute()
            if self._now_ns >= self._patience.next_look_ns:
                for connection, reason in self._patience.overdue(self._connections.values(), self._now_ns):
                    self._close(connection, reason)
            self._end_turn()
            self._send_answers()
        for connection in list(self._connections.values()):
            self._close(connection, "the broker stops")
        del self._colleagues[self._thread_ident]
        self._epoll.close()

    def _poll(self) -> list[tuple[int, int]]:
        self._now_ns = began_ns = monotonic_ns()
        self._sleeps_until_ns = until_ns = self._due_ns()
        mailbox = self._mailbox
        mailbox.owner_sleeps = True
        timeout_s = 0.0 if mailbox else -1 if until_ns == NEVER_NS else max(0, until_ns - began_ns) / 1e9
        self._turn.release()
        events = self._epoll.poll(timeout_s)
        self._turn.acquire()
        mailbox.owner_sleeps = False
        self._now_ns = now_ns = monotonic_ns()
        self.idle_ns += now_ns - began_ns
        return events

    def _due_ns(self) -> int:
        """Until when it may sleep if nothing happens."""
        if self._resumable:
            return self._now_ns
        if self._starved or self._drain_until_ns is not None:
            return self._now_ns + _RETRY_NS
        return min(self._patience.next_look_ns, self._muted.next_end_ns)

    def _handle_event(self, fd: int, event: int) -> None:
        connection = self._connections.get(fd)
        if connection is None:
            if fd == self._mailbox.fd:
                self._mailbox.acknowledge()
            return
        if event & select.EPOLLIN:
            if event & select.EPOLLRDHUP:
                connection.peer_closed = True
            self._read(connection)
        elif event & (select.EPOLLERR | select.EPOLLHUP):
            self._close(connection, "the client is gone")
        if event & select.EPOLLOUT:
            self._flush(connection)
        self._send_answers()

    # reading

    def _register(self, accepted: Accepted) -> None:
        connection = Connection(accepted, self, self._max_frame_bytes, self._now_ns)
        self._connections[connection.fd] = connection
        self._epoll.register(connection.fd, READABLE)
        self.accepted += 1
        if (displaced := self._patience.connected(connection, self._now_ns)) is not None:
            self._close(displaced, "too many connections are not authenticated, and it was the oldest")

    def _read(self, connection: Connection) -> None:
        if not self._may_read(connection):
            # Only now, because most of the time nothing comes while it may not be read, and that costs nothing.
            self._set_interest(connection, connection.interest & ~READABLE)
            return
        reader = connection.reader
        try:
            frames = reader.read(self._scratch)
        except BlockingIOError:
            if connection.outbox and not connection.interest & select.EPOLLOUT:  # a TLS handshake has more to send
                self._set_interest(connection, connection.interest | select.EPOLLOUT)
            return
        except EndOfStream:
            self._close(connection, None)
            return
        except OSError as error:
            self._close(connection, error.strerror)
            return
        except InvalidFrame as error:
            log.warning("invalid frame", connection=connection.id, detail=str(error))
            self._close(connection, str(error))
            return
        self.bytes_in += reader.received
        connection.last_active_ns = self._now_ns
        if connection.first_frame_began_ns is not None:
            self._patience.read_from(connection, self._now_ns, complete=bool(frames))
        if frames:
            self._memory.hold(connection, frames)
            connection.unread.extend(frames)
            self._begin_unread(connection)

    def _may_read(self, connection: Connection) -> bool:
        return (
            not connection.unread
            and self._may_begin(connection)
            and self._drain_until_ns is None
            and (connection.reader.frame_size <= _SCRATCH_BYTES or self._has_memory(connection))
        )

    def _may_begin(self, connection: Connection) -> bool:
        return (
            connection.delegated is None
            and not connection.muted_until_ns
            and len(connection.unanswered) < self._max_unanswered
            and connection.outbox.unsent_bytes < self._max_unsent_bytes
        )

    def _has_memory(self, connection: Connection) -> bool:
        """Return whether the memory for the unfinished frame is set aside; else it is starved."""
        if connection.reserved_bytes:
            return True
        if not self._memory.reserve(connection, self._now_ns):
            if connection not in self._starved:
                self._starved.append(connection)
            return False
        self._patience.reserved(self._now_ns)
        return True

    def _begin_unread(self, connection: Connection) -> None:
        """A turn is bounded, so that one who sends many long requests at once doesn't hold up the others."""
        unread, unanswered = connection.unread, connection.unanswered
        self._serving = connection
        turn_ends_ns = monotonic_ns() + _TURN_NS if len(unread) > 1 else NEVER_NS
        while unread and self._may_begin(connection) and not connection.closed:
            request = InboundRequest(connection, unread.popleft(), self._now_ns)
            unanswered.append(request)
            self.requests += 1
            try:
                if not self._begin(request):
                    self._delegate(request)
            except Exception:
                log.exception("request failed", connection=connection.id)
                self._close(connection, "its request failed")
            if unread and monotonic_ns() > turn_ends_ns:
                if not connection.dirty:  # else it goes on once its answers are sent
                    self._resumable.append(connection)
                return

    def _delegate(self, request: InboundRequest) -> None:
        request.connection.delegated = request
        if self._refused or not self._channel.offer(request, self):
            self._refused.append(request)

    def _offer_refused(self) -> None:
        while self._refused and self._channel.offer(self._refused[0], self):
            self._refused.popleft()

    def _resume(self) -> None:
        """Go on with connections that had to wait and need not any more."""
        resumable, self._resumable = self._resumable, []
        starved, self._starved = self._starved, []
        for connection in resumable:
            self._begin_unread(connection)
            self._send_answers()
        for connection in starved:
            self._restore_reading(connection)

    def _unmute(self) -> None:
        for connection in self._muted.ended(self._now_ns):
            self._go_on_reading(connection)
        if self._resumable:
            self._resume()

    def _restore_reading(self, connection: Connection) -> None:
        if not connection.closed and not connection.interest & select.EPOLLIN and self._may_read(connection):
            self._set_interest(connection, connection.interest | READABLE)

    # answering

    def _accept_answer(self, request: InboundRequest, chunks: Sequence[Chunk] | None) -> None:
        connection = request.connection
        if request.answered:
            log.error("second response to one request ignored", connection=connection.id)
            return
        request.answered = True
        request.answer = chunks
        request.frame = NO_FRAME
        self._memory.release(request)
        if connection.delegated is request:
            connection.delegated = None
        if len(connection.unanswered) == 1 and connection is not self._serving:
            self._flush(connection)  # a request that waited, and none behind it whose answer could leave with this one
        elif not connection.dirty:
            connection.dirty = True
            self._dirty.append(connection)

    def _send_answers(self) -> None:
        self._flush_dirty()
        while self._to_visit:
            self._to_visit.pop()._visit()

    def _flush_dirty(self) -> None:
        while self._dirty:
            connection = self._dirty.pop()
            connection.dirty = False
            self._flush(connection)

    def _flush(self, connection: Connection) -> None:
        if connection.closed:
            return
        outbox = connection.outbox
        try:
            connection.collect_answers()
            if outbox:
                self._send(connection, outbox)
        except OSError as error:
            self._close(connection, error.strerror)
        except SliceTruncated as error:
            log.error("log file is shorter than the response", connection=connection.id, detail=str(error))
            self._close(connection, str(error))
        except Exception:
            log.exception("response failed", connection=connection.id)
            self._close(connection, "its answer can't be sent")
        else:
            self._go_on_reading(connection)

    def _send(self, connection: Connection, outbox: Outbox) -> None:
        before = outbox.unsent_bytes
        all_sent = outbox.send()
        sent = before - outbox.unsent_bytes
        if sent:
            self.bytes_out += sent
            connection.last_active_ns = self._now_ns
        interest = connection.interest
        if all_sent == bool(interest & select.EPOLLOUT):
            self._set_interest(connection, interest ^ select.EPOLLOUT)

    def _go_on_reading(self, connection: Connection) -> None:
        if connection.unread:
            if self._may_begin(connection):
                self._resumable.append(connection)
        elif not connection.interest & select.EPOLLIN:
            self._restore_reading(connection)

    def _set_interest(self, connection: Connection, interest: int) -> None:
        connection.interest = interest
        self._epoll.modify(connection.fd, interest)

    # closing

    def _close(self, connection: Connection, reason: str | None) -> None:
        """`reason` is None where the client closed first, which is no news."""
        if connection.closed:
            return
        connection.closed = True
        if reason is not None:
            log.info("connection closed", connection=connection.id, reason=reason)
        del self._connections[connection.fd]
        self._memory.release_all(connection)
        connection.unread.clear()
        connection.unanswered.clear()
        if connection.delegated is not None and connection.delegated in self._refused:
            self._refused.remove(connection.delegated)
        self._patience.closed(connection)
        connection.socket.close()
        self.closed += 1
        self._on_closed(connection)

    def _close_least_recently_active(self) -> None:
        if self._connections:
            oldest = min(self._connections.values(), key=lambda connection: connection.last_active_ns)
            self._close(oldest, "too many connections, and it was the least recently active")

    # stopping

    def _drained(self, until_ns: int) -> bool:
        return self._now_ns >= until_ns or not any(
            connection.unanswered or connection.outbox for connection in self._connections.values()
        )
