"""TLS on one connection: handshake, records in, records out. Belongs to the connection's processor, never blocks.

The frame reader and the outbox of a TLS connection are those of a plain one with a `TlsTransport` in the place of the
socket; so a plain connection pays nothing. File slices are read and encrypted here: sendfile would need a kernel that
encrypts.
"""

import os
import ssl
from collections.abc import Callable
from contextlib import suppress
from socket import socket

from odradek.base.file_slice import FileSlice
from odradek.broker.network.frame_reader import FrameReader, Scratch
from odradek.broker.network.outbox import Outbox, SliceTruncated

_RECORD_BYTES = 16 << 10  # the largest record of TLS
_TURN_BYTES = 1 << 20
_SLICE_BYTES = 256 << 10


class HandshakeFailed(OSError):
    """The client and this listener can't agree, or its certificate is refused."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"TLS handshake failed: {detail}")
        self.strerror = str(self.args[0])


class TlsTransport:
    __slots__ = ("_context", "_on_handshake", "_plain", "_tls", "handshaking", "wants_write")
    _tls: ssl.SSLSocket

    def __init__(
        self, connected: socket, context: ssl.SSLContext, on_handshake: Callable[[bytes | None], None]
    ) -> None:
        """`on_handshake` gets the client's certificate in DER, None where it has none."""
        self._context = context
        self._plain: socket | None = connected  # until the handshake begins
        self._on_handshake = on_handshake
        self.handshaking = True
        self.wants_write = False
        """The handshake can't go on until the socket takes more bytes."""

    def fileno(self) -> int:
        return self._tls.fileno() if self._plain is None else self._plain.fileno()

    def pending(self) -> int:
        """Bytes that are decrypted and not taken yet: of them no selector tells."""
        return self._tls.pending()

    def do_handshake(self) -> None:
        """One step. BlockingIOError: it waits for the client."""
        self.wants_write = False
        try:
            if self._plain is not None:
                plain, self._plain = self._plain, None
                self._tls = self._context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            raise BlockingIOError from None
        except ssl.SSLWantWriteError:
            self.wants_write = True
            raise BlockingIOError from None
        except (OSError, ValueError) as error:
            raise HandshakeFailed(_detail(error)) from None
        self.handshaking = False
        self._on_handshake(self._tls.getpeercert(binary_form=True))

    def recv_into(self, buffer: memoryview) -> int:
        """Read as many records as have arrived and fit; 0 at the end of the stream."""
        received, limit = 0, min(len(buffer), _TURN_BYTES)
        while received < limit:
            try:
                count = self._tls.recv_into(buffer[received:limit])
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                if received:
                    return received
                raise BlockingIOError from None
            received += count
            if count < _RECORD_BYTES:
                break
        return received

    def send(self, data: bytes | bytearray | memoryview, flags: int = 0) -> int:
        """Send as much as the socket takes. The rest must be sent again first: OpenSSL has encrypted some."""
        sent = 0
        with memoryview(data) as view:
            while sent < len(view):
                try:
                    sent += self._tls.send(view[sent : sent + _TURN_BYTES])
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    if sent:
                        return sent
                    raise BlockingIOError from None
        return sent

    def close(self) -> None:
        if self._plain is not None:
            self._plain.close()
            return
        if not self.handshaking:
            with suppress(OSError, ValueError):
                self._tls.unwrap()  # sends close_notify; waits for nothing, because the socket doesn't block
        self._tls.close()


class TlsFrameReader(FrameReader):
    """Shakes hands before the first frame. Leaves no decrypted bytes behind, of which no event would tell."""

    __slots__ = ("_transport",)

    def __init__(self, transport: TlsTransport, max_size: int) -> None:
        super().__init__(transport, max_size)
        self._transport = transport

    def read(self, scratch: Scratch) -> list[bytearray]:
        transport = self._transport
        if transport.handshaking:
            transport.do_handshake()
        frames = super().read(scratch)
        received = self.received
        while transport.pending():
            frames += super().read(scratch)
            received += self.received
        self.received = received
        return frames


class TlsOutbox(Outbox):
    __slots__ = ("_transport",)

    def __init__(self, transport: TlsTransport) -> None:
        super().__init__(transport)
        self._transport = transport

    def __bool__(self) -> bool:
        return self._transport.wants_write or super().__bool__()

    def send(self) -> bool:
        if self._transport.wants_write:
            try:
                self._transport.do_handshake()
            except BlockingIOError:
                return not self._transport.wants_write
        return super().send()

    def _send_slice(self, piece: FileSlice) -> bool:
        data = os.pread(piece.file.fileno(), min(piece.size, _SLICE_BYTES), piece.position)
        if not data:
            raise SliceTruncated(f"{piece.size} bytes missing at position {piece.position}")
        sent = self._transport.send(data)
        self.unsent_bytes -= sent
        if sent == piece.size:
            self._queue.popleft()
        else:
            self._queue[0] = FileSlice(piece.file, piece.position + sent, piece.size - sent)
        return sent == len(data)


def _detail(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLEOFError):
        return "the client closed the connection"
    if isinstance(error, ssl.SSLError):
        return str(error.reason or error)
    return str(getattr(error, "strerror", None) or error)
