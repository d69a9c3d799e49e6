"""The writing side of a processor: answers leave in the order of their requests, and tell how heavy a connection is.

Belongs to the holder of the processor's turn, as the connections do.
"""

from collections.abc import Callable, Sequence
from select import EPOLLOUT

from odradek.base.file_slice import Chunk
from odradek.base.logs import get_logger
from odradek.broker.network.connection import READABLE, Connection, ConnectionOwner
from odradek.broker.network.frame_memory import FrameMemory
from odradek.broker.network.outbox import SliceTruncated
from odradek.broker.network.placement import HEAVY, LARGE_BYTES
from odradek.broker.network.request import NO_FRAME, InboundRequest
from odradek.broker.network.request_reader import RequestReader

log = get_logger(__name__)


class AnswerWriter:
    __slots__ = ("_close", "_memory", "_owner", "_reader", "_set_interest", "dirty", "misplaced", "serves_light")

    def __init__(
        self,
        owner: ConnectionOwner,
        reader: RequestReader,
        memory: FrameMemory,
        close: Callable[[Connection, str | None], None],
        set_interest: Callable[[Connection, int], None],
    ) -> None:
        """`owner` is the processor, `reader` its reading side; `close` and `set_interest` are the processor's."""
        self._owner = owner
        self._reader = reader
        self._memory = memory
        self._close = close
        self._set_interest = set_interest
        self.dirty: list[Connection] = []
        """Connections that have answers to send."""
        self.serves_light = False
        """The processor is its listener's first."""
        self.misplaced: list[Connection] = []
        """Connections that another processor should serve, by their last request and answer."""

    def accept(self, request: InboundRequest, chunks: Sequence[Chunk] | None) -> None:
        """Take the answer to a request, and send it if its turn has come and no other answer could leave with it."""
        connection = request.connection
        if connection.owner is not self._owner:
            connection.owner.answer(request, chunks)  # it has moved since the answer was posted
            return
        if request.answered:
            log.error("second response to one request ignored", connection=connection.id)
            return
        request.answered = True
        request.answer = chunks
        request.frame = NO_FRAME
        self._memory.release(request)
        if connection.delegated is request:
            connection.delegated = None
        if len(connection.unanswered) == 1 and connection is not self._reader.serving:
            self.flush(connection)  # no request behind it whose answer could leave with this one
        elif not connection.dirty:
            connection.dirty = True
            self.dirty.append(connection)

    def flush_dirty(self) -> None:
        while self.dirty:
            connection = self.dirty.pop()
            connection.dirty = False
            self.flush(connection)

    def flush(self, connection: Connection) -> None:
        """Send the answers whose turn has come, as far as the kernel takes them."""
        was_closed = connection.closed
        if was_closed:
            return
        outbox, reader = connection.outbox, self._reader
        try:
            sent = outbox.send_answers(connection.unanswered)
        except OSError as error:
            self._close(connection, error.strerror)
        except SliceTruncated as error:
            log.error("log file is shorter than the response", connection=connection.id, detail=str(error))
            self._close(connection, str(error))
        except Exception:
            log.exception("response failed", connection=connection.id)
            self._close(connection, "its answer can't be sent")
        else:
            if connection.closed:
                return  # one of the answers has closed it: a login was refused
            if sent:
                connection.last_active_ns = reader.now_ns
            if sent > LARGE_BYTES or connection.reader.expects_large:
                self._count_large(connection)
            elif connection.large_lately or not self.serves_light:
                self._count_small(connection)
            interest = connection.interest
            if outbox.unsent_bytes or interest != READABLE or connection.unread or connection.tls is not None:
                if bool(outbox) != bool(interest & EPOLLOUT):
                    self._set_interest(connection, interest ^ EPOLLOUT)
                reader.go_on(connection)

    def _count_large(self, connection: Connection) -> None:
        if connection.large_lately < HEAVY:
            connection.large_lately += 1
        if self.serves_light and connection.large_lately == HEAVY:
            self.misplaced.append(connection)

    def _count_small(self, connection: Connection) -> None:
        if connection.outbox:
            return  # a part of an answer
        if connection.large_lately:
            connection.large_lately -= 1
        if not (connection.large_lately or self.serves_light):
            self.misplaced.append(connection)
