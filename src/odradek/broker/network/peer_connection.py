"""A connection to another broker on which a request is begun and its answer taken later.

Between the two, the one thread that uses it may wait for the answer and for other things at once. The answer's bytes
stay in a buffer that the next one overwrites: what comes with every fetch is neither allocated nor copied.
"""

import socket
from struct import Struct
from typing import Any

from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.client.client_security import ClientSecurity
from odradek.protocol.api_keys import APIS
from odradek.protocol.schema import Request

_SIZE = Struct(">i")
_TIMEVAL = Struct("@ll")
_FIRST_BYTES = 1 << 16
_MAX_ANSWER_BYTES = 1 << 30


class PeerConnection(BrokerClient):
    def __init__(
        self,
        host: str,
        port: int,
        client_id: str,
        timeout_ms: int,
        connect_timeout_ms: int | None = None,
        receive_buffer_bytes: int = -1,
        security: ClientSecurity | None = None,
    ) -> None:
        """`receive_buffer_bytes`: SO_RCVBUF; a negative number leaves it to the kernel."""
        super().__init__(host, port, client_id, timeout_ms, connect_timeout_ms, security=security)
        self._buffer = bytearray(_FIRST_BYTES)
        if receive_buffer_bytes >= 0:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self._is_tls = security is not None and security.is_tls
        if self._is_tls:
            return
        # The kernel keeps the limits: Python's own would ask before each call whether the socket is ready.
        limit = _TIMEVAL.pack(timeout_ms // 1000, timeout_ms % 1000 * 1000)
        self._socket.settimeout(None)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def fileno(self) -> int:
        """Readable when the answer begins to arrive, or when the connection is lost."""
        return self._socket.fileno()

    def begin(self, request: Request, version: int) -> None:
        if self._renew_login_at is not None:
            self._maybe_renew_login()
        self._write(request, version)

    def finish(self, request: Request, version: int) -> Any:
        """The answer to the request that was begun. What it has of records is valid until the next `finish`."""
        try:
            frame = self._receive()
        except OSError as error:
            raise self._failure(request, error) from error
        except ConnectionFailed:
            self.close()
            raise
        return self._decode(APIS[request.KEY].response, frame, version)

    def shrink(self) -> None:
        """Lets go of what a large answer needed."""
        if len(self._buffer) > _FIRST_BYTES:
            self._buffer = bytearray(_FIRST_BYTES)

    def _receive(self) -> memoryview:
        """One call for a small answer, two for a large one."""
        received = self._fill(memoryview(self._buffer), 0, 4)
        (size,) = _SIZE.unpack_from(self._buffer)
        end = 4 + size
        if not 0 <= size <= _MAX_ANSWER_BYTES or received > end:
            raise ConnectionFailed(f"{self.address} doesn't speak the Kafka protocol")
        if end > len(self._buffer):
            buffer = bytearray(end)
            buffer[:received] = memoryview(self._buffer)[:received]
            self._buffer = buffer
        frame = memoryview(self._buffer)[:end]
        self._fill(frame, received, end)
        return frame[4:]

    def _fill(self, view: memoryview, received: int, enough: int) -> int:
        """Reads into the view until `enough` bytes are there; how many there are."""
        wait_for_all = socket.MSG_WAITALL if enough == len(view) and not self._is_tls else 0
        while received < enough:
            count = self._socket.recv_into(view[received:], 0, wait_for_all)
            if not count:
                raise ConnectionFailed(f"the broker at {self.address} closed the connection")
            received += count
        return received
