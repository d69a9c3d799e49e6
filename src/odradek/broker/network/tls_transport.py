"""TLS on one connection: handshake, records in, records out. Belongs to the connection's processor, never blocks.

Steps of the handshake cost signatures and run elsewhere (`handshake_pool`): the processor begins a step, does nothing
with the connection but close it, and is notified of the step's end.

The frame reader and the outbox of a TLS connection are those of a plain one with a `TlsTransport` in the place of the
socket; so a plain connection pays nothing. File slices are read and encrypted here: sendfile would need a kernel that
encrypts.
"""

import ctypes
import errno
import os
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from fcntl import ioctl
from socket import socket
from sys import byteorder
from termios import FIONREAD
from time import monotonic_ns, thread_time_ns
from typing import cast

from odradek.base.file_slice import Chunk, FileSlice
from odradek.broker.network.frame_reader import FrameReader, Scratch
from odradek.broker.network.outbox import Outbox, truncated
from odradek.broker.network.packet_filter import DROP_DATA, attach, detach

_RECORD_OVERHEAD_BYTES = 22  # the least that a record has beside its content
_NO_COUNT = bytes(4)
_NOWHERE = bytes(16)
_FRUITLESS_NS_MAX = 10_000_000  # processor time of a read that brings nothing: hundreds of messages
_TURN_BYTES, _TURN_RECORDS = 1 << 20, 80  # so that one client doesn't hold up the others
_RUN_BYTES = 256 << 10
_NO_CERTIFICATE = "PEER_DID_NOT_RETURN_A_CERTIFICATE"


class HandshakeFailed(OSError):
    """The client and this listener can't agree, or its certificate is refused."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"TLS handshake failed: {detail}")
        self.strerror = str(self.args[0])


class TlsTransport:
    __slots__ = (
        "_context",
        "_fd",
        "_is_closed",
        "_is_stepping",
        "_on_handshake",
        "_on_refused",
        "_outcome",
        "_plain",
        "_tls",
        "handshaking",
        "is_behind",
        "max_bytes",
        "wants_write",
        "was_cut",
        "was_fruitless",
    )
    _tls: ssl.SSLSocket
    _changing = threading.Lock()  # of all connections: `_is_stepping` and `_is_closed`, for a moment

    def __init__(
        self,
        connected: socket,
        context: ssl.SSLContext,
        on_handshake: Callable[[bytes | None, bool], None],
        on_refused: Callable[[str], None],
    ) -> None:
        """`on_handshake` gets the client's certificate in DER, None where it has none, and whether a session was
        resumed; it raises PermissionError to refuse it. `on_refused` gets the reason of a refusal."""
        self._on_refused = on_refused
        self._context = context
        self._plain: socket | None = connected  # until the handshake begins
        self._fd = connected.fileno()
        self._on_handshake = on_handshake
        self._is_stepping = self._is_closed = False
        self._outcome: Exception | None = None
        self.was_cut = False
        """A read or a step didn't come to an end, and was ended."""
        self.was_fruitless = False
        """A read took long and brought nothing. One may: Python looks for garbage wherever it likes."""
        self.handshaking = True
        self.wants_write = False
        """The handshake can't go on until the socket takes more bytes."""
        self.is_behind = False
        """The last read took as much as it could: there may be more, of which no selector tells."""
        self.max_bytes = _TURN_BYTES
        """The most that one read takes."""

    def fileno(self) -> int:
        return self._fd

    def pending(self) -> int:
        """Bytes that are decrypted and not taken yet."""
        return self._tls.pending()

    def do_step(self) -> None:
        """Carry out a step of the handshake, on any thread; `end_step` tells its outcome. A connection that was closed
        meanwhile is closed here, because its descriptor may not be another's while OpenSSL uses it."""
        with self._changing:
            if self._is_closed:
                return
            self._is_stepping = True
        try:
            if self._plain is not None:
                self._tls = self._context.wrap_socket(self._plain, server_side=True, do_handshake_on_connect=False)
                self._plain = None
            self._tls.do_handshake()
            self._outcome = None
        except (OSError, ValueError) as error:
            self._outcome = error
        self._stepped()

    def _stepped(self) -> None:
        with self._changing:
            self._is_stepping = False
            if self._is_closed:
                self._close()

    def end_step(self) -> None:
        """The processor's part of a step. BlockingIOError: the handshake waits for the client."""
        error, self._outcome = self._outcome, None
        self.wants_write = isinstance(error, ssl.SSLWantWriteError)
        if isinstance(error, ssl.SSLWantReadError | ssl.SSLWantWriteError):
            raise BlockingIOError
        if error is not None:
            detail = _detail(error)
            if isinstance(error, ssl.SSLCertVerificationError) or getattr(error, "reason", "") == _NO_CERTIFICATE:
                self._on_refused(detail)
            raise HandshakeFailed(detail)
        self.handshaking = False
        try:
            self._on_handshake(self._tls.getpeercert(binary_form=True), self._tls.session_reused is True)
        except PermissionError as refusal:
            self._on_refused(str(refusal.strerror))
            raise

    def recv_into(self, buffer: memoryview) -> int:
        """Read as many records as have arrived and fit; 0 at the end of the stream.

        Java clients send a request as several records: its header, its batches, its last bytes. The kernel is asked how
        much has arrived, because a read in vain makes an exception, and a look at the selector for each costs more.
        """
        read, limit = self._tls.read, min(len(buffer), self.max_bytes)
        received = arrived = 0
        for _ in range(_TURN_RECORDS):
            try:
                count = cast(int, read(limit - received, buffer[received:limit]))
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                if received:
                    break
                raise BlockingIOError from None
            except ConnectionError:
                if received:
                    break  # the next read tells of it
                raise
            received += count
            if not count or received == limit:
                break
            arrived -= count + _RECORD_OVERHEAD_BYTES
            if arrived <= _RECORD_OVERHEAD_BYTES:
                arrived = self._arrived()
                if arrived <= _RECORD_OVERHEAD_BYTES:
                    break
        self.is_behind = received == limit
        return received

    def send(self, data: bytes | bytearray | memoryview, flags: int = 0) -> int:
        """Send as much as the socket takes. The rest must be sent again first, in pieces no shorter: OpenSSL has
        encrypted some."""
        sent = 0
        with memoryview(data) as view:
            while sent < len(view):
                try:
                    sent += self._tls.send(view[sent : sent + _RUN_BYTES])
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    if sent:
                        return sent
                    raise BlockingIOError from None
        return sent

    def cut(self) -> None:
        """Let a read that doesn't come to an end meet the end of the stream. Any thread."""
        with self._changing:
            if not self._is_closed:
                self.was_cut = True
                self._disconnect()

    def close(self) -> None:
        with self._changing:
            self._is_closed = True
            if self._is_stepping:
                self._disconnect()  # otherwise a client that never stops would block the thread of the step
                return
        self._close()

    def _disconnect(self) -> None:
        """Disconnect by a connect to AF_UNSPEC, which also drops received data; after a shutdown that could be read for
        a second or longer."""
        ctypes.CDLL(None).connect(self._fd, _NOWHERE, len(_NOWHERE))

    def _close(self) -> None:
        if self._plain is not None:
            self._plain.close()
            return
        if not self.handshaking:
            with suppress(OSError, ValueError):
                self._notify_close()
        self._tls.close()

    def _notify_close(self) -> None:
        """Send close_notify. It waits for nothing, because the socket doesn't block, but OpenSSL reads behind it, as
        long as a client goes on with messages of the protocol. So nothing more may come; and if something has come,
        the client learns of the end by a reset."""
        attach(self._tls, DROP_DATA)
        try:
            if not self._arrived():
                self._tls.unwrap()
        finally:
            detach(self._tls)  # otherwise a client that still sends would not be notified

    def _arrived(self) -> int:
        """Return the bytes that the kernel has for the connection."""
        return int.from_bytes(ioctl(self._fd, FIONREAD, _NO_COUNT), byteorder)


class TlsFrameReader(FrameReader):
    """Shakes hands before the first frame. Leaves no decrypted bytes behind, of which no event would tell."""

    __slots__ = ("_begin_step", "_transport")

    def __init__(self, transport: TlsTransport, max_size: int, begin_step: Callable[[], None]) -> None:
        """`begin_step` has the next step of the handshake carried out elsewhere; nothing is read until its end."""
        super().__init__(transport, max_size)
        self._transport = transport
        self._begin_step = begin_step

    def read(self, scratch: Scratch) -> list[bytearray]:
        transport = self._transport
        if transport.handshaking:
            self._begin_step()
            raise BlockingIOError
        reads, began_ns = scratch.tls_reads, thread_time_ns()
        reads.begin(transport)
        try:
            return self._read_decrypted(scratch)
        except BlockingIOError:
            if thread_time_ns() - began_ns > _FRUITLESS_NS_MAX:
                if transport.was_fruitless:
                    transport.was_cut = True
                    raise OSError(errno.EPROTO, "it sends messages of TLS and no data") from None
                transport.was_fruitless = True
            raise
        finally:
            reads.transport = None

    def _read_decrypted(self, scratch: Scratch) -> list[bytearray]:
        """Read until no decrypted bytes are left."""
        transport, frames = self._transport, super().read(scratch)
        if transport.is_behind:
            received = self.received
            while transport.is_behind and (rest := transport.pending()):
                transport.max_bytes = rest  # no further record: a client that never stops has its next turn later
                frames += super().read(scratch)
                received += self.received
            transport.max_bytes = _TURN_BYTES
            self.received = received
        return frames


class TlsOutbox(Outbox):
    """Encrypts answers in long runs of whole records: bytes and file slices are gathered in a buffer of the thread."""

    __slots__ = ("_transport",)
    _turn_bytes = 2 << 20

    def __init__(self, transport: TlsTransport) -> None:
        super().__init__(transport)
        self._transport = transport

    def __bool__(self) -> bool:
        return self._transport.wants_write or super().__bool__()

    def send(self) -> bool:
        if self._transport.wants_write:
            self._transport.do_step()  # the rest of a step's output; later output waits for the client
            try:
                self._transport.end_step()
            except BlockingIOError:
                return not self._transport.wants_write
        return super().send()

    def _send_next(self) -> bool:
        """Send a run. If OpenSSL could send a part only, the same bytes, or those and more, must come next: it has
        encrypted some. The queue gives them again, because it is shortened by what was sent."""
        with memoryview(_runs.buffer) as buffer:
            size = self._gather(buffer)
            with buffer[:size] as run:
                sent = self._transport.send(run) if size else 0
        self._drop(sent)
        return sent == size

    def _gather(self, buffer: memoryview) -> int:
        size = 0
        for item in self._queue:
            if size == len(buffer):
                break
            if isinstance(item, FileSlice):
                with buffer[size : size + item.size] as room:
                    read = os.preadv(item.file.fileno(), [room], item.position)
                    if read < len(room):
                        raise truncated(item, read)
                    size += read
            elif not callable(item):
                part = item[: len(buffer) - size]
                buffer[size : size + len(part)] = part
                size += len(part)
        return size

    def _drop(self, sent: int) -> None:
        """Drop sent bytes, and report complete answers."""
        queue, callbacks = self._queue, []
        self.unsent_bytes -= sent
        while queue:
            head = queue[0]
            if isinstance(head, FileSlice):
                size = head.size
            elif callable(head):
                callbacks.append(head)
                queue.popleft()
                continue
            else:
                size = len(head)
            if sent < size:
                if sent:
                    queue[0] = _rest_of(head, sent)
                break
            sent -= size
            queue.popleft()
        if callbacks:
            now_ns = monotonic_ns()
            for on_sent in callbacks:
                on_sent(now_ns)


def _rest_of(chunk: Chunk, sent: int) -> Chunk:
    if isinstance(chunk, FileSlice):
        return chunk.after(sent)
    return memoryview(chunk)[sent:]


class _Runs(threading.local):
    """One buffer a thread."""

    def __init__(self) -> None:
        self.buffer = bytearray(_RUN_BYTES)


_runs = _Runs()


def _detail(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLEOFError):
        return "the client closed the connection"
    if isinstance(error, ssl.SSLError):
        return str(error.reason or error)
    return str(getattr(error, "strerror", None) or error)
