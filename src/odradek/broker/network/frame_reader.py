"""Bytes of one socket, cut into frames. Belongs to the connection's processor.

A frame is four bytes of size (big-endian) and that many bytes. Small frames are read many at a time into the
processor's scratch buffer and copied out, each into a buffer of its own. A frame that is cut by the end of what has
arrived gets its own buffer at once and the rest is received straight into it; the buffer is a few times as large as the
received bytes, so that a false size costs nothing, and nearly every frame is copied once.

From a client that has sent a large frame the size is received first, and then the frame into its own buffer: a system
call more, and no byte is copied.
"""

from struct import Struct
from typing import Protocol

from odradek.broker.network.placement import LARGE_BYTES
from odradek.broker.network.read_watch import WatchedReads
from odradek.native.buffers import new_buffer

_SIZE = Struct(">i")
_AHEAD = 8  # bytes of a buffer for each byte that has come
_LEAST = 4 << 10
_LARGE_MAX = 1 << 20  # up to this size of large frames, a further receive costs less than the copy


class InvalidFrame(Exception):
    """The client sends an invalid frame; the message has the fault."""


class EndOfStream(Exception):
    """The client has closed its side."""


class ByteSource(Protocol):
    """A socket that doesn't block, or TLS over one."""

    def recv_into(self, buffer: memoryview, /) -> int: ...


class Scratch:
    """The read buffer that one processor's connections share, one at a time."""

    def __init__(self, size: int) -> None:
        self.buffer = bytearray(size)
        self.view = memoryview(self.buffer)
        self.size = size
        self.tls_reads = WatchedReads()


class FrameReader:
    __slots__ = ("_filled", "_frame", "_socket", "_stub", "expects_large", "frame_size", "max_size", "received")

    def __init__(self, connected: ByteSource, max_size: int) -> None:
        self._socket = connected
        self.max_size = max_size
        self._stub = b""  # the first bytes of a size field, while it is incomplete
        self._frame: bytearray | None = None
        self._filled = 0
        self.expects_large = False
        """The last frame was large."""
        self.frame_size = 0  # of the frame that is incomplete; 0 where there is none
        self.received = 0  # bytes that the last read brought

    def read(self, scratch: Scratch) -> list[bytearray]:
        """Return the frames that one receive completes, often none or many."""
        if self._frame is not None:
            return self._read_rest(self._frame)
        stub = self._stub
        if not stub:
            if self.expects_large:
                return self._read_large(scratch)
            end = self.received = self._socket.recv_into(scratch.view)
            buffer = scratch.buffer
            if end >= 4 and _SIZE.unpack_from(buffer)[0] == end - 4 <= self.max_size:
                self.expects_large = end > LARGE_BYTES
                return [buffer[4:end]]  # one whole frame, as it nearly always is
        else:
            start = len(stub)
            scratch.buffer[:start] = stub
            self.received = self._socket.recv_into(scratch.view[start:])
            end = start + self.received
            self._stub = b""
        if not self.received:
            raise EndOfStream
        return self._cut(scratch, end)

    def _read_large(self, scratch: Scratch) -> list[bytearray]:
        """Receive the size of the next frame, and its first bytes into a buffer of that size."""
        end = self.received = self._socket.recv_into(scratch.view[:4])
        if not end:
            raise EndOfStream
        if end < 4:
            self._stub = bytes(scratch.buffer[:end])
            return []
        (size,) = _SIZE.unpack_from(scratch.buffer)
        if not LARGE_BYTES <= size <= min(_LARGE_MAX, self.max_size):
            self.expects_large = False
            self.received += self._receive_more(scratch.view[4:])
            return self._cut(scratch, self.received)
        self.frame_size, frame = size, new_buffer(size)
        with memoryview(frame) as whole:
            filled = self._receive_more(whole)
            self.received += filled
            if size > filled * _AHEAD:
                self._keep(whole[:filled])
                return []
        return self._take(frame, filled)

    def _receive_more(self, buffer: memoryview) -> int:
        """Receive bytes behind a size. None of them may have come; the end of the stream is left for the next read."""
        try:
            return self._socket.recv_into(buffer)
        except BlockingIOError:
            return 0

    def _cut(self, scratch: Scratch, end: int) -> list[bytearray]:
        buffer = scratch.buffer
        frames: list[bytearray] = []
        start = 0
        while end - start >= 4:
            (size,) = _SIZE.unpack_from(buffer, start)
            if not 0 <= size <= self.max_size:
                raise InvalidFrame(f"frame of {size} bytes, allowed are 0 to {self.max_size}")
            start += 4
            stop = start + size
            if stop > end:
                self.frame_size = size
                self._keep(scratch.view[start:end])
                return frames
            frames.append(buffer[start:stop])
            start = stop
        if start < end:
            self._stub = bytes(buffer[start:end])
        return frames

    def _keep(self, begun: memoryview) -> bytearray:
        """Copy the part of the frame that has come into a buffer with room for more of it."""
        self._filled = filled = len(begun)
        self._frame = frame = new_buffer(min(self.frame_size, max(filled * _AHEAD, _LEAST)))
        with memoryview(frame) as whole:  # assigned to a bytearray, a view would be copied twice
            whole[:filled] = begun
        return frame

    def _read_rest(self, frame: bytearray) -> list[bytearray]:
        filled = self._filled
        if filled == len(frame):
            with memoryview(frame) as begun:
                frame = self._keep(begun)
        with memoryview(frame) as whole, whole[filled:] as rest:
            self.received = self._socket.recv_into(rest)
        if not self.received:
            raise EndOfStream
        return self._take(frame, filled + self.received)

    def _take(self, frame: bytearray, filled: int) -> list[bytearray]:
        """Keep a frame of which so much has come, or return it if that is all."""
        if filled < self.frame_size:
            self._frame, self._filled = frame, filled
            return []
        self._frame = None
        self.expects_large = self.frame_size > LARGE_BYTES
        self.frame_size = 0
        return [frame]
