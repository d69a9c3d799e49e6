"""One client's connection: bytes in, cut into frames; frames out, as fast as the client takes them."""

import socket
import struct
from collections.abc import Iterator

from odradek.local.coordination.core.reads import Caller
from odradek.local.coordination.settings import JUTE_MAXBUFFER

_LENGTH = struct.Struct(">i")
_READ_BYTES = 1 << 16
_PAUSE_BYTES = 4 << 20
"""Requests of a client that doesn't read its answers wait in its own socket."""
_UNSENT_BYTES_MAX = 64 << 20
"""More than that can be notifications only. Its session may be taken up again by another connection."""
_SEND_BYTES_MAX = 1 << 18


class Disconnected(Exception):
    """The connection ends: the client closed it, sent invalid data, or didn't read its answers."""


class Connection:
    def __init__(self, number: int, peer: socket.socket, address: tuple[str, int], deadline_ms: int) -> None:
        self.number = number
        self.socket = peer
        self.host, self.port = address
        """Address of the client when it connected; a socket that was reset has none any more."""
        self.caller: Caller | None = None
        """None before the client has asked for a session."""
        self.timeout_ms = 0
        self.deadline_ms = deadline_ms
        """The time at which it ends, unless the client has asked for a session."""
        self.is_closing = False
        """The connection ends after its last frame is sent; nothing more is read."""
        self.is_registered_for = 0
        self.received = self.sent = 0
        self._in = bytearray()
        self._out: list[bytes] = []
        self._unsent = 0

    def read(self) -> None:
        try:
            data = self.socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            raise Disconnected(str(error)) from error
        if not data:
            raise Disconnected("closed by the client")
        self._in += data

    def frames(self) -> Iterator[bytes]:
        """Whole ones, while the client takes its answers. A length that no request may have ends the connection."""
        position = 0
        try:
            while self.may_read and len(self._in) - position >= 4:
                size = _LENGTH.unpack_from(self._in, position)[0]
                if not 0 <= size <= JUTE_MAXBUFFER:
                    raise Disconnected(f"a request of {size} bytes; the most is {JUTE_MAXBUFFER}")
                end = position + 4 + size
                if end > len(self._in):
                    break
                self.received += 1
                frame = bytes(self._in[position + 4 : end])
                position = end
                yield frame
        finally:
            del self._in[:position]

    @property
    def has_frame(self) -> bool:
        """True for a request that was read and not yet served."""
        return len(self._in) >= 4 and len(self._in) - 4 >= _LENGTH.unpack_from(self._in)[0]

    def first_word(self) -> bytes:
        """The first four bytes of a new connection, which may be a command in place of a length."""
        return bytes(self._in[:4]) if self.caller is None else b""

    def queue(self, frame: bytes) -> None:
        self._out.append(frame)
        self._unsent += len(frame)
        self.sent += 1

    def flush(self) -> None:
        """Send as much as the client takes now."""
        if self._unsent > _UNSENT_BYTES_MAX:
            raise Disconnected("it takes no answers")
        while self._out:
            data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
            try:
                sent = self.socket.send(memoryview(data)[:_SEND_BYTES_MAX])
            except BlockingIOError:
                sent = 0
            except OSError as error:
                raise Disconnected(str(error)) from error
            self._unsent -= sent
            rest = data[sent:]
            self._out = [rest] if rest else []
            if sent == 0:
                return

    @property
    def has_unsent(self) -> bool:
        return bool(self._out)

    @property
    def may_read(self) -> bool:
        return not self.is_closing and self._unsent < _PAUSE_BYTES
