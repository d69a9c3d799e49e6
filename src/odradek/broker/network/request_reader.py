"""The reading side of a processor: frames of its connections become requests, which the application begins.

Belongs to the holder of the processor's turn, as the connections do.

Reading stops, and with it the client, while
  - a handler thread has one of the connection's requests (or the handlers' queue is full),
  - its client has used more than it may, and is muted,
  - too many of its requests wait for their answers, or too many bytes of answers wait to be sent,
  - its next frame is large and the memory for requests is used up.
"""

from collections import deque
from collections.abc import Callable
from select import EPOLLIN, EPOLLOUT
from time import monotonic_ns

from odradek.base.logs import get_logger
from odradek.broker.network.connection import READABLE, Connection
from odradek.broker.network.connection_timeouts import ConnectionTimeouts
from odradek.broker.network.frame_memory import FrameMemory
from odradek.broker.network.frame_reader import EndOfStream, InvalidFrame, Scratch
from odradek.broker.network.muted_connections import NEVER_NS, MutedConnections
from odradek.broker.network.request import Application, InboundRequest
from odradek.broker.network.request_channel import RequestChannel, Waiter
from odradek.broker.network.settings import ServerSettings

log = get_logger(__name__)

_SCRATCH_BYTES = 128 << 10
_RETRY_NS = 20_000_000
_TURN_NS = 20_000_000


class RequestReader:
    __slots__ = (
        "_begin",
        "_channel",
        "_close",
        "_max_unanswered",
        "_max_unsent_bytes",
        "_memory",
        "_refused",
        "_scratch",
        "_set_interest",
        "_timeouts",
        "_waiter",
        "bytes_in",
        "is_draining",
        "muted",
        "now_ns",
        "requests",
        "resumable",
        "serving",
        "starved",
        "tls_reads",
    )

    def __init__(
        self,
        settings: ServerSettings,
        application: Application,
        channel: RequestChannel,
        waiter: Waiter,
        memory: FrameMemory,
        timeouts: ConnectionTimeouts,
        close: Callable[[Connection, str | None], None],
        set_interest: Callable[[Connection, int], None],
    ) -> None:
        """`waiter` is called when the channel has room again; `close` and `set_interest` are the processor's."""
        self._max_unanswered = settings.max_unanswered_per_connection
        self._max_unsent_bytes = settings.max_unsent_bytes_per_connection
        self._begin = application.begin
        self._channel = channel
        self._waiter = waiter
        self._memory = memory
        self._timeouts = timeouts
        self._close = close
        self._set_interest = set_interest
        self._scratch = Scratch(_SCRATCH_BYTES)
        self.tls_reads = self._scratch.tls_reads
        self.resumable: list[Connection] = []
        """Connections with unread frames that may begin; `resume` goes on with them."""
        self._refused: deque[InboundRequest] = deque()  # wait for room in the handlers' queue
        self.starved: dict[Connection, None] = {}
        """Connections that wait for room in the request memory, in their order, each once: there may be thousands.
        `resume` looks again."""
        self.bytes_in = self.requests = 0
        self.muted = MutedConnections()
        self.now_ns = monotonic_ns()
        """The time of the processor's turn."""
        self.is_draining = False
        """Flag of a processor that stops, and reads nothing more."""
        self.serving: Connection | None = None
        """The connection whose requests are begun one after the other: their answers leave together. None while a
        frame is served that came alone."""

    def read(self, connection: Connection) -> None:
        """Receive once, and begin the requests that are complete."""
        reader = connection.reader
        if (
            connection.unread
            or self.is_draining
            or not self._may_begin(connection)
            or not (reader.frame_size <= _SCRATCH_BYTES or self._has_memory(connection))
        ):
            # Checked here, because mostly nothing comes while reading is not allowed, and that costs nothing.
            self._set_interest(connection, connection.interest & ~READABLE)
            return
        try:
            frames = reader.read(self._scratch)
        except BlockingIOError:
            if connection.outbox and not connection.interest & EPOLLOUT:  # a TLS handshake has more to send
                self._set_interest(connection, connection.interest | EPOLLOUT)
            return
        except (EndOfStream, ConnectionResetError):
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
        connection.last_active_ns = self.now_ns
        if connection.first_frame_began_ns is not None:
            self._timeouts.read_from(connection, self.now_ns, complete=bool(frames))
        if len(frames) == 1:  # as it nearly always is; it was found that it may begin
            self._memory.hold(connection, len(frames[0]))
            self.serving = None
            self._begin_request(connection, frames[0])
        elif frames:
            self._memory.hold(connection, sum(map(len, frames)))
            connection.unread.extend(frames)
            self._begin_unread(connection)

    def go_on(self, connection: Connection) -> None:
        """Continue with a connection that may have waited for its answers, which are sent now."""
        if connection.unread:
            if self._may_begin(connection):
                self.resumable.append(connection)
        elif not connection.interest & EPOLLIN:
            self._restore_reading(connection)

    def resume(self, send_answers: Callable[[], None]) -> None:
        """Continue with connections that no longer have to wait; answers are sent after each."""
        resumable, self.resumable = self.resumable, []
        starved, self.starved = self.starved, {}
        for connection in resumable:
            self._begin_unread(connection)
            send_answers()
        for connection in starved:
            self._restore_reading(connection)

    def unmute(self) -> None:
        for connection in self.muted.ended(self.now_ns):
            self.go_on(connection)

    def due_ns(self) -> int:
        """Return the time until which the processor may sleep if nothing happens."""
        if self.resumable:
            return self.now_ns
        if self.starved or self.is_draining:
            return self.now_ns + _RETRY_NS
        look_ns, unmute_ns = self._timeouts.next_look_ns, self.muted.next_end_ns
        return look_ns if look_ns < unmute_ns else unmute_ns

    def offer_refused(self) -> None:
        """Offer refused requests to the handlers again."""
        while self._refused and self._channel.offer(self._refused[0], self._waiter):
            self._refused.popleft()

    def closed(self, connection: Connection) -> None:
        """Forget a connection that is closed."""
        self._memory.release_all(connection)
        connection.unread.clear()
        connection.unanswered.clear()
        if connection.delegated is not None and connection.delegated in self._refused:
            self._refused.remove(connection.delegated)

    def is_settled(self, connection: Connection) -> bool:
        """Return whether nothing of the connection is half done here, so that another processor may have it."""
        return (
            connection.delegated is None
            and not connection.muted_until_ns
            and not connection.reserved_bytes
            and not connection.unread
            and not connection.dirty
            and connection.first_frame_began_ns is None
            and connection not in self.resumable
            and connection not in self.starved
        )

    def _may_read(self, connection: Connection) -> bool:
        return (
            not connection.unread
            and self._may_begin(connection)
            and not self.is_draining
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
        if not self._memory.reserve(connection, self.now_ns):
            self.starved[connection] = None
            return False
        self._timeouts.reserved(self.now_ns)
        return True

    def _begin_unread(self, connection: Connection) -> None:
        """A turn is bounded, so that a client with many long requests does not block the others."""
        self.serving = connection
        unread = connection.unread
        turn_ends_ns = monotonic_ns() + _TURN_NS if len(unread) > 1 else NEVER_NS
        while unread and self._may_begin(connection) and not connection.closed:
            self._begin_request(connection, unread.popleft())
            if unread and monotonic_ns() > turn_ends_ns:
                if not connection.dirty:  # otherwise it continues when its answers are sent
                    self.resumable.append(connection)
                return

    def _begin_request(self, connection: Connection, frame: bytearray) -> None:
        self.requests += 1
        request = InboundRequest(connection, frame, self.now_ns)
        connection.unanswered.append(request)
        try:
            if not self._begin(request):
                self._delegate(request)
        except Exception:
            log.exception("request failed", connection=connection.id)
            self._close(connection, "its request failed")

    def _delegate(self, request: InboundRequest) -> None:
        request.connection.delegated = request
        if self._refused or not self._channel.offer(request, self._waiter):
            self._refused.append(request)

    def _restore_reading(self, connection: Connection) -> None:
        if not connection.closed and not connection.interest & EPOLLIN and self._may_read(connection):
            self._set_interest(connection, connection.interest | READABLE)
