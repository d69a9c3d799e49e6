"""A process that connects to a listener again and again, one connection after the other; run by `security_figures`.

    python -m odradek.apps.lab.bench.login_client tls PORT SECONDS
    python -m odradek.apps.lab.bench.login_client scram PORT SECONDS USER PASSWORD

Frames are made by hand and the password is salted once, so that the broker has the greater part of the work. Prints how
many connections it made.
"""

import secrets
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable
from functools import lru_cache

from odradek.apps.lab.bench.systems import SCRAM
from odradek.protocol.framing import encode_request
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.security.scram import ScramClient, salted_password

_VERSIONS = encode_request(ApiVersionsRequest(), 0, 1, None)
_HANDSHAKE = encode_request(SaslHandshakeRequest(mechanism=SCRAM), 1, 2, None)
_CLOSE_AT_ONCE = struct.pack("ii", 1, 0)
_HEADER_BYTES = 4 + 4  # size and correlation id
_SIZE = struct.Struct(">i")
_OUTCOME = struct.Struct(">hh")
_NO_MESSAGE = -1


def main(mode: str, port: int, seconds: float, *credential: str) -> int:
    """Return the number of connections that were made in the time."""
    once = _tls_once(port) if mode == "tls" else _scram_once(port, *credential)
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        once()
        count += 1
    return count


def _tls_once(port: int) -> Callable[[], None]:
    """Make a handshake and one request, because a client of TLS 1.3 finishes the handshake before the server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3

    def once() -> None:
        with context.wrap_socket(connected(port)) as connection:
            _exchange(connection, _VERSIONS)

    return once


def _scram_once(port: int, user: str, password: str) -> Callable[[], None]:
    @lru_cache
    def salted(hash_name: str, salt: bytes, iterations: int) -> bytes:
        return salted_password(hash_name, password, salt, iterations)

    def once() -> None:
        scram = ScramClient(SCRAM, user, password, secrets.token_urlsafe(24), salted_password=salted)
        with connected(port) as connection:
            log_in(connection, scram)

    return once


def log_in(connection: socket.socket, scram: ScramClient) -> None:
    """Log in. ConnectionError or ScramError unless the broker accepts the login and proves its identity."""
    _exchange(connection, _HANDSHAKE)
    scram.verify(_token(connection, scram.final(_token(connection, scram.first()))))


def connected(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), 30)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _CLOSE_AT_ONCE)  # its port is free again at once
    return connection


def _exchange(connection: socket.socket, request: bytes) -> bytes:
    connection.sendall(request)
    data = connection.recv(65536)
    while len(data) < 4 or len(data) < 4 + _SIZE.unpack_from(data)[0]:
        more = connection.recv(65536)
        if not more:
            raise ConnectionError("closed by the broker")
        data += more
    return data[_HEADER_BYTES:]


def _token(connection: socket.socket, token: bytes) -> bytes:
    """The broker's token, from an answer of version 1: error code, message, token, lifetime."""
    answer = _exchange(connection, encode_request(SaslAuthenticateRequest(auth_bytes=token), 1, 3, None))
    error, message = _OUTCOME.unpack_from(answer)
    if error or message not in (_NO_MESSAGE, 0):
        raise ConnectionError(f"login refused: {answer!r}")
    (size,) = _SIZE.unpack_from(answer, _OUTCOME.size)
    begin = _OUTCOME.size + _SIZE.size
    return answer[begin : begin + size]


if __name__ == "__main__":
    sys.stdout.write(f"{main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), *sys.argv[4:])}\n")
