"""A client that speaks frames and nothing else, and the simplest application to answer it."""

import socket
import struct
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from odradek.broker.network.request import InboundRequest
from odradek.broker.network.server import SocketServer
from waiting import PATIENCE_S


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


class Echo:
    """Answers each frame with itself."""

    def begin(self, request: InboundRequest) -> bool:
        request.reply([framed(bytes(request.frame))])
        return True

    def rounds(self) -> AbstractContextManager[Callable[[], None]]:
        return nullcontext(lambda: None)

    def run(self, request: InboundRequest) -> None:
        raise AssertionError("nothing was declined")


class FrameClient:
    def __init__(
        self, server: SocketServer | int, listener: str = "PLAINTEXT", receive_buffer: int | None = None
    ) -> None:
        """`server`: or the port of one in another process."""
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(("127.0.0.1", server if isinstance(server, int) else server.port(listener)))

    def send(self, *payloads: bytes) -> None:
        self.socket.sendall(b"".join(map(framed, payloads)))

    def receive(self) -> bytes:
        return self.receive_exactly(struct.unpack(">i", self.receive_exactly(4))[0])

    def receive_exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = self.socket.recv(min(size - len(data), 1 << 20))
            if not chunk:
                raise EOFError
            data += chunk
        return bytes(data)

    def ask(self, payload: bytes) -> bytes:
        self.send(payload)
        return self.receive()

    def receive_until_closed(self) -> bytes:
        data = bytearray()
        while chunk := self.socket.recv(1 << 20):
            data += chunk
        return bytes(data)

    def is_closed(self) -> bool:
        """Wait for the end of the connection, and return whether it came."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self.socket.close()
