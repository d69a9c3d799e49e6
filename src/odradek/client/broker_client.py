"""A blocking connection to one broker, for tools and tests: one request at a time, at the highest common version.

    with BrokerClient("127.0.0.1", 9092, client_id="odradek") as client:
        response = client.send(MetadataRequest(topics=None))

Not thread-safe, but for `abort`. After an error the connection is closed; make a new client to go on.
"""

import itertools
import socket
import time
from collections.abc import Iterator
from struct import Struct
from types import TracebackType
from typing import Any, Self

from odradek.base.errors import ErrorCode
from odradek.client.client_security import AuthenticationRefused, ClientSecurity
from odradek.protocol.api_keys import APIS, ApiKey
from odradek.protocol.framing import decode_response, encode_request
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.protocol.primitives import ProtocolError
from odradek.protocol.schema import Request, Response

_SIZE = Struct(">i")
_CORRELATION_AND_ERROR = Struct(">ih")
_MAX_RESPONSE_BYTES = 1 << 30
_RENEWAL_FACTOR = 0.85  # of a session's lifetime: as Kafka's clients, before it ends


class ConnectionFailed(Exception):
    """The broker can't be reached, or went away, or took too long. The message says which, for a person.

    `advice` is the next step for a user of the command line; `str` has it, `message` does not.
    """

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(f"{message}; {advice}" if advice else message)
        self.message = message


class UnsupportedByBroker(Exception):
    """The broker doesn't know the request, or no version of it that we know."""


class BrokerClient:
    def __init__(
        self,
        host: str,
        port: int,
        client_id: str | None = "odradek",
        timeout_ms: int = 30_000,
        connect_timeout_ms: int | None = None,
        correlation_ids: Iterator[int] | None = None,
        remembers: bool = False,
        security: ClientSecurity | None = None,
    ) -> None:
        """Connects, authenticates as `security` says, and asks for the broker's versions. `connect_timeout_ms` can only
        shorten the time for connecting.

        `correlation_ids`: for who goes on counting where an earlier connection ended. `remembers`: for who asks the
        same again and again; an answer whose bytes are those of the one before, of its kind, is the same object.
        """
        self._remembered: dict[tuple[type[Response], int], tuple[memoryview, Any]] | None = {} if remembers else None
        self.address = f"{host}:{port}"
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._correlation_ids = itertools.count(1) if correlation_ids is None else correlation_ids
        self._correlation_id = 0
        self._security = security
        self._renew_login_at: float | None = None
        try:
            connect_seconds = min(timeout_ms, connect_timeout_ms or timeout_ms) / 1000
            self._socket = socket.create_connection((host, port), connect_seconds)
            self._socket.settimeout(timeout_ms / 1000)
        except OSError as error:
            detail = "the connection timed out" if isinstance(error, TimeoutError) else error.strerror or str(error)
            raise ConnectionFailed(f"no broker answers at {self.address}: {detail}") from error
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if security is not None:
                self._secure(security, host)
            self.versions = self._ask_versions()
            if security is not None and security.mechanism is not None:
                self._log_in(security)
        except BaseException:
            self.close()
            raise

    def send(self, request: Request, version: int | None = None) -> Any:
        """The response object, of the class that belongs to the request; None to a Produce with acks=0."""
        if self._renew_login_at is not None:
            self._maybe_renew_login()
        if version is None:
            version = self.best_version(request.KEY)
        if isinstance(request, ProduceRequest) and request.acks == 0:
            self._write(request, version)
            return None
        return self._decode(APIS[request.KEY].response, self._exchange(request, version), version)

    def best_version(self, api_key: int) -> int:
        api = APIS[api_key]
        offered = self.versions.get(api_key)
        if offered is None:
            raise UnsupportedByBroker(f"the broker at {self.address} has no {api.name} request")
        best = min(offered[-1], api.max_version)
        if best < max(offered[0], api.min_version):
            raise UnsupportedByBroker(
                f"the broker at {self.address} has {api.name} in versions {offered[0]} to {offered[-1]}, "
                f"and we have {api.min_version} to {api.max_version}"
            )
        return best

    def detach(self) -> socket.socket:
        """The connection, secured and authenticated, for a user who speaks on it himself. This client is closed."""
        return self._socket

    def close(self) -> None:
        self._socket.close()

    def abort(self) -> None:
        """Close from another thread: a caller that waits for an answer gets ConnectionFailed now."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # it has no connection any more

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _secure(self, security: ClientSecurity, host: str) -> None:
        try:
            self._socket = security.wrap(self._socket, host)
        except (OSError, ValueError) as error:
            detail = getattr(error, "verify_message", None) or getattr(error, "reason", None) or error
            raise ConnectionFailed(f"TLS with the broker at {self.address} failed: {detail}") from error

    def _log_in(self, security: ClientSecurity) -> None:
        """SASL, the first time or again. The session's lifetime says when it is due again."""
        assert security.mechanism is not None
        lifetime_ms = 0

        def exchange(token: bytes) -> bytes:
            nonlocal lifetime_ms
            answer = self._ask(SaslAuthenticateRequest(auth_bytes=token))
            if answer.error_code:
                raise AuthenticationRefused(answer.error_message or ErrorCode(answer.error_code).name)
            lifetime_ms = answer.session_lifetime_ms
            return bytes(answer.auth_bytes)

        shaken = self._ask(SaslHandshakeRequest(mechanism=security.mechanism), 1)
        try:
            if shaken.error_code:
                raise AuthenticationRefused(
                    f"mechanism {security.mechanism} is not one of the broker's, {', '.join(shaken.mechanisms)}"
                )
            security.authenticate(exchange)
        except AuthenticationRefused as refusal:
            self.close()
            raise ConnectionFailed(f"the broker at {self.address} refuses to authenticate: {refusal}") from None
        began = time.monotonic()
        self._renew_login_at = began + lifetime_ms * _RENEWAL_FACTOR / 1000 if lifetime_ms else None

    def _maybe_renew_login(self) -> None:
        if self._renew_login_at is not None and self._security is not None and time.monotonic() > self._renew_login_at:
            self._log_in(self._security)

    def _ask(self, request: Request, version: int | None = None) -> Any:
        """Send a request of the connection itself, before and between the requests of its user."""
        chosen = self.best_version(request.KEY) if version is None else version
        return self._decode(APIS[request.KEY].response, self._exchange(request, chosen), chosen)

    def _ask_versions(self) -> dict[int, range]:
        """A broker too old for our version of the question answers error 35 in version 0; then we ask in that."""
        version = APIS[ApiKey.API_VERSIONS].max_version
        request = ApiVersionsRequest(client_software_name="odradek", client_software_version="0.1.0")
        frame = self._exchange(request, version)
        if len(frame) >= 6 and _CORRELATION_AND_ERROR.unpack_from(frame)[1] == ErrorCode.UNSUPPORTED_VERSION:
            version = 0
            frame = self._exchange(request, version)
        answer = self._decode(ApiVersionsResponse, frame, version)
        if answer.error_code:
            raise ConnectionFailed(f"the broker at {self.address} refuses: {ErrorCode(answer.error_code).name}")
        return {key.api_key: range(key.min_version, key.max_version + 1) for key in answer.api_keys}

    def _decode(self, response: type[Response], frame: memoryview, version: int) -> Any:
        known = self._remembered.get((response, version)) if self._remembered is not None else None
        if known is not None and frame[4:] == known[0] and self._is_answer(frame):
            return known[1]
        try:
            correlation_id, answer = decode_response(response, frame, version)
        except ProtocolError as error:
            self.close()
            raise ConnectionFailed(
                f"the broker at {self.address} sends what is no {response.__name__}: {error}"
            ) from error
        if correlation_id != self._correlation_id:
            self.close()
            raise ConnectionFailed(f"the broker at {self.address} answers another request than the last")
        if self._remembered is not None:
            self._remembered[response, version] = (frame[4:], answer)
        return answer

    def _is_answer(self, frame: memoryview) -> bool:
        (correlation_id,) = _SIZE.unpack_from(frame)
        return bool(correlation_id == self._correlation_id)

    def _exchange(self, request: Request, version: int) -> memoryview:
        self._write(request, version)
        try:
            (size,) = _SIZE.unpack(self._read(4))
            if not 0 <= size <= _MAX_RESPONSE_BYTES:
                raise ConnectionFailed(f"{self.address} doesn't speak the Kafka protocol")
            return memoryview(self._read(size))
        except OSError as error:
            raise self._failure(request, error) from error
        except ConnectionFailed:
            self.close()
            raise

    def _write(self, request: Request, version: int) -> None:
        self._correlation_id = next(self._correlation_ids)
        frame = encode_request(request, version, self._correlation_id, self._client_id)
        try:
            self._socket.sendall(frame)
        except OSError as error:
            raise self._failure(request, error) from error

    def _failure(self, request: Request, error: OSError) -> ConnectionFailed:
        self.close()
        name = APIS[request.KEY].name
        if isinstance(error, TimeoutError):
            return ConnectionFailed(f"the broker at {self.address} didn't answer {name} within {self._timeout_ms} ms")
        return ConnectionFailed(f"lost the broker at {self.address} during {name}: {error.strerror or error}")

    def _read(self, size: int) -> bytes:
        chunks = []
        missing = size
        while missing:
            chunk = self._socket.recv(min(missing, 1 << 20))
            if not chunk:
                raise ConnectionFailed(f"the broker at {self.address} closed the connection")
            chunks.append(chunk)
            missing -= len(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
