"""A client of one broker: requests at the highest common version, answers in the order of the requests.

    with BrokerClient("127.0.0.1", 9092, client_id="odradek") as client:
        response = client.send(MetadataRequest(topics=None))

`send` waits for the answer. `submit` and `receive` are its halves: several requests may be in flight between them.
Not thread-safe, but for `abort`. After an error the connection is closed; make a new client to go on.
"""

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator
from struct import Struct
from types import TracebackType
from typing import Any, NamedTuple, Self

from odradek.base.errors import ErrorCode
from odradek.client.client_security import AuthenticationRefused, ClientSecurity
from odradek.client.connection import Connection, ConnectionFailed
from odradek.protocol.api_keys import APIS, ApiKey
from odradek.protocol.framing import decode_response, encode_request
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.protocol.primitives import ProtocolError
from odradek.protocol.schema import Request, Response

_CORRELATION_ID = Struct(">i")
_CORRELATION_AND_ERROR = Struct(">ih")
_RENEWAL_FACTOR = 0.85  # of a session's lifetime: as Kafka's clients, before it ends

__all__ = ["BrokerClient", "ConnectionFailed", "UnsupportedByBroker"]


class UnsupportedByBroker(Exception):
    """The broker doesn't know the request, or none of our versions of it."""


class _InFlight(NamedTuple):
    correlation_id: int
    api_key: int
    version: int


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
        connected: Callable[["BrokerClient"], None] | None = None,
    ) -> None:
        """Connects, authenticates as `security` says, and asks for the broker's versions. `connect_timeout_ms` can only
        shorten the time for connecting.

        `correlation_ids`: to continue the numbers of an earlier connection. `remembers`: for repeated requests; an
        answer with the same bytes as the one before, of its kind, is the same object. `connected` is called before the
        first request, for callers that may have to `abort` it.
        """
        self._remembered: dict[tuple[type[Response], int], tuple[memoryview, Any]] | None = {} if remembers else None
        self.address = f"{host}:{port}"
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._correlation_ids = itertools.count(1) if correlation_ids is None else correlation_ids
        self._in_flight: deque[_InFlight] = deque()
        self._security = security
        self._renew_login_at: float | None = None
        self.connection = Connection(host, port, timeout_ms, connect_timeout_ms)
        try:
            if connected is not None:
                connected(self)
            if security is not None:
                self.connection.secure(security)
            self.versions = self._first_versions()
            if security is not None and security.mechanism is not None:
                self._log_in(security)
        except BaseException:
            self.close()
            raise

    def send(self, request: Request, version: int | None = None) -> Any:
        """Send a request; return its response object, None for a Produce with acks=0."""
        self.submit(request, version)
        return self.receive() if self._in_flight else None

    def submit(self, request: Request, version: int | None = None) -> None:
        """Send the request; `receive` takes its answer. A Produce with acks=0 has none."""
        if self._renew_login_at is not None and not self._in_flight:
            self._maybe_renew_login()
        if version is None:
            version = self.best_version(request.KEY)
        self._write(request, version)
        if isinstance(request, ProduceRequest) and request.acks == 0:
            self._in_flight.pop()

    def receive(self) -> Any:
        """Wait for the answer to the oldest request in flight."""
        asked = self._in_flight.popleft()
        return self._decode(asked, self._receive(asked))

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

    def close(self) -> None:
        self.connection.close()

    def abort(self) -> None:
        """Close from another thread: a caller that waits for an answer gets ConnectionFailed now."""
        self.connection.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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

        handshake = self._ask(SaslHandshakeRequest(mechanism=security.mechanism), 1)
        try:
            if handshake.error_code:
                raise AuthenticationRefused(
                    f"mechanism {security.mechanism} is not one of the broker's, {', '.join(handshake.mechanisms)}"
                )
            security.authenticate(exchange, self.connection.host)
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
        self._write(request, self.best_version(request.KEY) if version is None else version)
        return self.receive()

    def _first_versions(self) -> dict[int, range]:
        """Ask for the versions, the first request: a listener with TLS ends a connection without TLS at this point,
        with bytes that are not Kafka's protocol."""
        try:
            return self._ask_versions()
        except ConnectionFailed as failure:
            if (self._security is not None and self._security.is_tls) or isinstance(failure.__cause__, TimeoutError):
                raise
            hint = "the listener may speak TLS (security.protocol=SSL or SASL_SSL in --command-config FILE)"
            raise ConnectionFailed(f"{failure.message}; {hint}") from failure.__cause__

    def _ask_versions(self) -> dict[int, range]:
        """Ask for the versions. A broker that is too old for our version answers error 35 in version 0, in which we
        then repeat the request."""
        request = ApiVersionsRequest(client_software_name="odradek", client_software_version="0.1.0")
        asked, frame = self._ask_versions_in(APIS[ApiKey.API_VERSIONS].max_version, request)
        if len(frame) >= 6 and _CORRELATION_AND_ERROR.unpack_from(frame)[1] == ErrorCode.UNSUPPORTED_VERSION:
            asked, frame = self._ask_versions_in(0, request)
        answer: ApiVersionsResponse = self._decode(asked, frame)
        if answer.error_code:
            raise ConnectionFailed(f"the broker at {self.address} refuses: {ErrorCode(answer.error_code).name}")
        return {key.api_key: range(key.min_version, key.max_version + 1) for key in answer.api_keys}

    def _ask_versions_in(self, version: int, request: ApiVersionsRequest) -> tuple[_InFlight, memoryview]:
        self._write(request, version)
        asked = self._in_flight.popleft()
        return asked, self._receive(asked)

    def _decode(self, asked: _InFlight, frame: memoryview) -> Any:
        response = APIS[asked.api_key].response
        known = self._remembered.get((response, asked.version)) if self._remembered is not None else None
        if known is not None and frame[4:] == known[0] and _CORRELATION_ID.unpack_from(frame)[0] == asked[0]:
            return known[1]
        try:
            correlation_id, answer = decode_response(response, frame, asked.version)
        except ProtocolError as error:
            self.close()
            raise ConnectionFailed(
                f"the broker at {self.address} sends what is no {response.__name__}: {error}"
            ) from error
        if correlation_id != asked.correlation_id:
            self.close()
            raise ConnectionFailed(f"the broker at {self.address} answers another request than the last")
        if self._remembered is not None:
            self._remembered[response, asked.version] = (frame[4:], answer)
        return answer

    def _write(self, request: Request, version: int) -> None:
        asked = _InFlight(next(self._correlation_ids), request.KEY, version)
        frame = encode_request(request, version, asked.correlation_id, self._client_id)
        try:
            self.connection.send(frame)
        except OSError as error:
            raise self._failure(asked, error) from error
        self._in_flight.append(asked)

    def _receive(self, asked: _InFlight) -> memoryview:
        try:
            return self.connection.receive()
        except OSError as error:
            raise self._failure(asked, error) from error
        except ConnectionFailed:
            self.close()
            raise

    def _failure(self, asked: _InFlight, error: OSError) -> ConnectionFailed:
        self.close()
        name = APIS[asked.api_key].name
        if isinstance(error, TimeoutError):
            return ConnectionFailed(f"the broker at {self.address} didn't answer {name} within {self._timeout_ms} ms")
        return ConnectionFailed(f"lost the broker at {self.address} during {name}: {error.strerror or error}")
