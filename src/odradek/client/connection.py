"""The connection to one broker: frames out, frames in, over TCP or TLS.

Every client of a broker speaks through it: `BrokerClient` with objects, `PipelinedConnection` with frames that it does
not wait for. OSError and ConnectionFailed leave the connection in an unknown state: its user closes it.
"""

import socket
from struct import Struct

from odradek.client.client_security import ClientSecurity

_SIZE = Struct(">i")
_TIMEVAL = Struct("@ll")
_FIRST_BYTES = 1 << 16
_MAX_RESPONSE_BYTES = 1 << 30


class ConnectionFailed(Exception):
    """The broker can't be reached, closed the connection, or took too long. The message has the reason.

    `advice` is the next step for a user of the command line; `str` has it, `message` does not.
    """

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(f"{message}; {advice}" if advice else message)
        self.message = message


class Connection:
    def __init__(self, host: str, port: int, timeout_ms: int, connect_timeout_ms: int | None = None) -> None:
        """Connects. `timeout_ms` limits each later call too; `connect_timeout_ms` can only shorten the first."""
        self.address = f"{host}:{port}"
        self.host = host
        self._timeout_ms = timeout_ms
        self._is_tls = False
        self._is_aborted = False
        self._buffer: bytearray | None = None
        try:
            self._socket = socket.create_connection(
                (host, port), min(timeout_ms, connect_timeout_ms or timeout_ms) / 1000
            )
            self._socket.settimeout(timeout_ms / 1000)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            detail = "the connection timed out" if isinstance(error, TimeoutError) else error.strerror or str(error)
            raise ConnectionFailed(f"no broker answers at {self.address}: {detail}") from error

    def secure(self, security: ClientSecurity) -> None:
        """Do the TLS handshake, where `security` has TLS."""
        try:
            self._socket = security.wrap(self._socket, self.host, self._begin_tls)
        except (OSError, ValueError) as error:
            detail = getattr(error, "verify_message", None) or getattr(error, "reason", None) or error
            may_be_plain = getattr(error, "verify_message", None) is None and not isinstance(
                error, TimeoutError | ValueError
            )
            hint = "; the listener may not speak TLS" if may_be_plain else ""
            raise ConnectionFailed(f"TLS with the broker at {self.address} failed: {detail}{hint}") from error
        self._is_tls = security.is_tls

    def _begin_tls(self, secured: socket.socket) -> None:
        self._socket = secured
        if self._is_aborted:
            self.abort()

    @property
    def certificate_ends_s(self) -> float | None:
        """Unix time at which the broker's certificate ends; None without TLS."""
        if not self._is_tls:
            return None
        import ssl

        assert isinstance(self._socket, ssl.SSLSocket)
        certificate = self._socket.getpeercert()
        return ssl.cert_time_to_seconds(str(certificate["notAfter"])) if certificate else None

    def reuse_buffer(self, receive_buffer_bytes: int = -1) -> None:
        """Receive into one buffer that the next frame overwrites: no allocation or copy for each of many fetches.

        At most one request may be in flight then. `receive_buffer_bytes`: SO_RCVBUF; a negative number leaves it to
        the kernel.
        """
        self._buffer = bytearray(_FIRST_BYTES)
        if receive_buffer_bytes >= 0:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        if self._is_tls:
            return
        # The kernel keeps the limits: Python's own would ask before each call whether the socket is ready.
        limit = _TIMEVAL.pack(self._timeout_ms // 1000, self._timeout_ms % 1000 * 1000)
        self._socket.settimeout(None)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def shrink_buffer(self) -> None:
        """Release the memory that a large frame needed."""
        if self._buffer is not None and len(self._buffer) > _FIRST_BYTES:
            self._buffer = bytearray(_FIRST_BYTES)

    def send(self, frame: bytes) -> None:
        self._socket.sendall(frame)

    def receive(self) -> memoryview:
        """The next frame, without its length field. With a reused buffer it is valid until the next call."""
        if self._buffer is not None:
            return self._receive_into(self._buffer)
        (size,) = _SIZE.unpack(self._read(_SIZE.size))
        self._check_size(size)
        return memoryview(self._read(size))

    def fileno(self) -> int:
        """Readable when a frame begins to arrive, or when the connection is lost."""
        return self._socket.fileno()

    def detach(self) -> socket.socket:
        """The socket, secured and authenticated, for a user who reads and writes it without this class."""
        return self._socket

    def close(self) -> None:
        self._socket.close()

    def abort(self) -> None:
        """Close from another thread: a caller that waits for a frame, or for the TLS handshake, fails now."""
        self._is_aborted = True
        try:
            # That of SSLSocket would take TLS away from the caller, who might go on without.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        except OSError:
            return  # the socket is closed already

    def _check_size(self, size: int) -> None:
        if not 0 <= size <= _MAX_RESPONSE_BYTES:
            raise ConnectionFailed(f"{self.address} doesn't speak the Kafka protocol")

    def _read(self, size: int) -> bytes:
        chunks = []
        missing = size
        while missing:
            chunk = self._socket.recv(min(missing, 1 << 20))
            if not chunk:
                raise self._closed()
            chunks.append(chunk)
            missing -= len(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _receive_into(self, buffer: bytearray) -> memoryview:
        """One call for a small frame, two for a large one."""
        view = memoryview(buffer)
        received = self._fill(view, 0, _SIZE.size)
        (size,) = _SIZE.unpack_from(buffer)
        end = _SIZE.size + size
        if received == end:  # the whole frame, as it nearly always is
            return view[_SIZE.size : end]
        self._check_size(size)
        if received > end:
            raise ConnectionFailed(f"{self.address} sends more than was asked for")
        if end > len(buffer):
            larger = bytearray(end)
            larger[:received] = memoryview(buffer)[:received]
            self._buffer = buffer = larger
        frame = memoryview(buffer)[:end]
        self._fill(frame, received, end)
        return frame[_SIZE.size :]

    def _fill(self, view: memoryview, received: int, enough: int) -> int:
        """Read into the view until `enough` bytes are there; return their number."""
        wait_for_all = socket.MSG_WAITALL if enough == len(view) and not self._is_tls else 0
        while received < enough:
            count = self._socket.recv_into(view[received:], 0, wait_for_all)
            if not count:
                raise self._closed()
            received += count
        return received

    def _closed(self) -> ConnectionFailed:
        return ConnectionFailed(f"the broker at {self.address} closed the connection")
