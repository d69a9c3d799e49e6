"""A request on its way through the broker, and the application that serves it.

An `InboundRequest` is made by the processor that read it. The application may keep it, pass it between threads
and answer it from any of them; what an answer changes is changed by that processor, or in its stead while it sleeps.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from time import monotonic_ns
from typing import TYPE_CHECKING, Protocol

from odradek.base.file_slice import Chunk

if TYPE_CHECKING:
    from odradek.broker.network.connection import Connection

NO_FRAME = memoryview(bytearray())


class Application(Protocol):
    def begin(self, request: "InboundRequest") -> bool:
        """Serve it here, or leave it pending somewhere, and answer True. False: it may block, call `run`.

        Runs on a processor's thread: while it runs, that processor's other connections wait.
        """

    def rounds(self) -> AbstractContextManager[Callable[[], None]]:
        """Entered by a processor's thread for as long as it serves. The thread calls the result each time that it has
        begun all requests that it had read: work that was put off for more of its kind is carried out then.
        """

    def run(self, request: "InboundRequest") -> None:
        """Serve what `begin` declined. Runs on a handler thread and may block."""


class InboundRequest:
    """One frame and the duty to answer it.

    `frame` is the frame without its size field, over a buffer that belongs to this request alone.
    """

    __slots__ = ("answer", "answered", "connection", "frame", "held_bytes", "on_sent", "received_ns", "work")

    def __init__(self, connection: "Connection", frame: bytearray, received_ns: int) -> None:
        self.connection = connection
        self.frame = memoryview(frame)
        self.received_ns = received_ns
        self.on_sent: Callable[[int], None] | None = None
        """Callback, on the sending thread, with the monotonic time at which the kernel took the last byte."""
        self.held_bytes = len(frame)
        self.answer: Sequence[Chunk] | None = None
        self.answered = False
        self.work: object = None
        """Work that `begin` has prepared for `run`."""

    def reply(self, chunks: Sequence[Chunk] | None) -> None:
        """Answer with exactly these bytes, the size field included; None where no answer is due. Any thread, once.

        Answers leave in the order of their requests, whatever the order of the replies.
        """
        self.connection.owner.answer(self, chunks)

    def mute_connection(self, ms: int) -> None:
        """Read nothing more from the client for so long; answers leave as ever. Any thread."""
        self.connection.owner.mute(self.connection, monotonic_ns() + ms * 1_000_000)

    def close_connection(self, reason: str) -> None:
        """Close the connection: nothing more is read from the client or sent to it. Any thread."""
        self.connection.owner.close(self.connection, reason)
