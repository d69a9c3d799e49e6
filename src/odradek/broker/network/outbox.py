"""Unsent responses of one connection, in order. Belongs to the connection's processor.

Small answers that are ready together leave in one send, and short file slices with them: a copy costs less than a
system call. Longer slices go from the page cache to the socket by sendfile, never through this process; the bytes
before one are sent with MSG_MORE so that they share its packet.
"""

import os
from collections import deque
from collections.abc import Callable
from socket import MSG_MORE
from time import monotonic_ns
from typing import Protocol, TypeAlias, TypeGuard

from odradek.base.file_slice import COPIED_BYTES_MAX, Chunk, FileSlice
from odradek.broker.network.request import InboundRequest

SentCallback: TypeAlias = Callable[[int], None]

_RUN_BYTES = 256 << 10


class SliceTruncated(Exception):
    """The file ends before the slice: the answer can't be completed."""


class ByteSink(Protocol):
    """A socket that doesn't block, or TLS over one."""

    def send(self, data: bytes | bytearray | memoryview, flags: int = 0, /) -> int: ...

    def fileno(self) -> int: ...


class Outbox:
    __slots__ = ("_queue", "_socket", "unsent_bytes")
    _turn_bytes = 4 << 20

    def __init__(self, connected: ByteSink) -> None:
        self._socket = connected
        self._queue: deque[Chunk | SentCallback] = deque()
        self.unsent_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._queue)

    def send_answers(self, unanswered: deque[InboundRequest]) -> int:
        """Send the answers whose turn has come, after earlier unsent ones. Return how many bytes the kernel took;
        what it did not take is sent when the socket can be written."""
        if not self._queue and len(unanswered) == 1:
            request = unanswered[0]
            answer = request.answer
            if answer is not None and len(answer) == 1 and type(data := answer[0]) is bytes:
                unanswered.popleft()
                return self._send_only(data, request.on_sent)
        while unanswered and unanswered[0].answered:
            self._add(unanswered.popleft())
        before = self.unsent_bytes
        self.send()
        return before - self.unsent_bytes

    def _send_only(self, data: bytes, on_sent: SentCallback | None) -> int:
        """Send the only answer there is, past the queue, where most answers need no more than one send."""
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            self._queue.append(memoryview(data)[sent:])
            self.unsent_bytes = len(data) - sent
            if on_sent is not None:
                self._queue.append(on_sent)
        elif on_sent is not None:
            on_sent(monotonic_ns())
        return sent

    def _add(self, request: InboundRequest) -> None:
        queue = self._queue
        for chunk in request.answer or ():
            size = chunk.size if type(chunk) is FileSlice else len(chunk)
            if size:
                queue.append(chunk)
                self.unsent_bytes += size
        if request.on_sent is not None:
            queue.append(request.on_sent)

    def send(self) -> bool:
        """Send as much as the kernel takes. True: all is sent. False: call again when the socket can be written.

        A turn is bounded, so that one reader of large slices doesn't hold up the others.
        """
        queue = self._queue
        turn_ends_at = self.unsent_bytes - self._turn_bytes
        while queue:
            if self.unsent_bytes <= turn_ends_at:
                return False
            try:
                complete = self._send_next()
            except BlockingIOError:
                return False
            if not complete:
                return False
        return True

    def _send_next(self) -> bool:
        """Send the begin of the queue. False: the socket took a part of it."""
        head = self._queue[0]
        return self._send_slice(head) if _goes_by_sendfile(head) else self._send_run()

    def _send_run(self) -> bool:
        """The chunks up to the next long slice, as one send."""
        queue = self._queue
        run: list[bytes | bytearray | memoryview] = []
        callbacks: list[SentCallback] = []
        size = 0
        while queue and size < _RUN_BYTES and not _goes_by_sendfile(queue[0]):
            item = queue.popleft()
            if callable(item):
                callbacks.append(item)
            else:
                data = _copied(item) if isinstance(item, FileSlice) else item
                run.append(data)
                size += len(data)
        sent = 0
        data = run[0] if len(run) == 1 else b"".join(run)
        try:
            sent = self._socket.send(data, MSG_MORE if queue and _goes_by_sendfile(queue[0]) else 0) if size else 0
        finally:
            self.unsent_bytes -= sent
            if sent < size:
                queue.extendleft(reversed(callbacks))
                queue.appendleft(memoryview(data)[sent:])
        if sent < size:
            return False
        if callbacks:
            now_ns = monotonic_ns()
            for on_sent in callbacks:
                on_sent(now_ns)
        return True

    def _send_slice(self, piece: FileSlice) -> bool:
        sent = os.sendfile(self._socket.fileno(), piece.file.fileno(), piece.position, piece.size)
        if not sent:
            raise truncated(piece, 0)
        self.unsent_bytes -= sent
        if sent == piece.size:
            self._queue.popleft()
            return True
        self._queue[0] = piece.after(sent)
        return True


def _goes_by_sendfile(item: Chunk | SentCallback) -> TypeGuard[FileSlice]:
    return type(item) is FileSlice and item.size > COPIED_BYTES_MAX


def _copied(piece: FileSlice) -> bytes:
    data = piece.read()
    if len(data) < piece.size:
        raise truncated(piece, len(data))
    return data


def truncated(piece: FileSlice, found: int) -> SliceTruncated:
    return SliceTruncated(f"{piece.size - found} bytes missing at position {piece.position + found}")
