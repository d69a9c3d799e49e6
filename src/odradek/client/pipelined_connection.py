"""A non-blocking connection to a broker with several requests in flight, for tools that measure.

A broker answers the requests of a connection in order, so answers are matched by counting. The connection sends and
receives whole frames; the caller encodes and decodes them.
"""

from collections import deque
from struct import Struct
from typing import Generic, TypeVar

from odradek.client.broker_client import BrokerClient, ConnectionFailed

_LENGTH = Struct(">i")
_TLS_WANTS = (2, 3)  # SSL_ERROR_WANT_READ and SSL_ERROR_WANT_WRITE; as numbers, because ssl takes long to import
_RECEIVE_BYTES = 256 * 1024

Tag = TypeVar("Tag")


class PipelinedConnection(Generic[Tag]):
    """`Tag`: a value that comes back with the answer to a request."""

    def __init__(self, client: BrokerClient) -> None:
        """Take over the connection of `client`, secured and authenticated, without a request in flight."""
        self.address = client.address
        self.socket = client.connection.detach()
        self.socket.setblocking(False)
        self._unsent: deque[memoryview] = deque()
        self._in_flight: deque[Tag] = deque()
        self._received = bytearray()

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def wants_to_write(self) -> bool:
        return bool(self._unsent)

    def close(self) -> None:
        self.socket.close()

    def submit(self, frame: bytes, tag: Tag) -> None:
        """Send a request that is answered. `frame` must not be changed afterwards."""
        self._in_flight.append(tag)
        self.submit_unanswered(frame)

    def submit_unanswered(self, frame: bytes) -> None:
        self._unsent.append(memoryview(frame))
        if len(self._unsent) == 1:
            self.write()

    def write(self) -> None:
        """Write as much of the unsent bytes as the socket takes."""
        try:
            while self._unsent:
                sent = self.socket.send(self._unsent[0])
                if sent < len(self._unsent[0]):
                    self._unsent[0] = self._unsent[0][sent:]
                    return
                self._unsent.popleft()
        except OSError as error:
            if _would_block(error):
                return
            raise ConnectionFailed(f"lost the broker at {self.address}: {error.strerror or error}") from error

    def read(self) -> list[tuple[Tag, memoryview]]:
        """Return the complete answers, each with the tag of its request, without their length fields."""
        try:
            chunk = self.socket.recv(_RECEIVE_BYTES)
        except OSError as error:
            if _would_block(error):
                return []
            raise ConnectionFailed(f"lost the broker at {self.address}: {error.strerror or error}") from error
        if not chunk:
            raise ConnectionFailed(f"the broker at {self.address} closed the connection")
        self._received += chunk
        return self._cut_answers()

    def _cut_answers(self) -> list[tuple[Tag, memoryview]]:
        answers: list[tuple[Tag, memoryview]] = []
        at = 0
        while len(self._received) - at >= 4:
            (length,) = _LENGTH.unpack_from(self._received, at)
            if length < 4 or not self._in_flight:
                raise ConnectionFailed(f"{self.address} sends what was not asked for")
            if len(self._received) - at - 4 < length:
                break
            answers.append((self._in_flight.popleft(), memoryview(bytes(self._received[at + 4 : at + 4 + length]))))
            at += 4 + length
        del self._received[:at]
        return answers


def _would_block(error: OSError) -> bool:
    return isinstance(error, BlockingIOError) or (
        type(error).__name__.startswith("SSLWant") and error.errno in _TLS_WANTS
    )
