"""Requests of SASL connections before they reach a handler.

Before a client is authenticated, it may send ApiVersions a few times, SaslHandshake and SaslAuthenticate; any other
request closes the connection without being decoded. A failure is answered after
`connection.failed.authentication.delay.ms`, and then the connection is closed. The audit log has each failure.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from struct import pack
from typing import Self

from odradek.base.clock import SYSTEM_CLOCK
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode
from odradek.base.file_slice import Chunk
from odradek.base.logs import get_logger
from odradek.base.metrics import Sample
from odradek.broker.network.request import InboundRequest
from odradek.broker.purgatory.reaper import ExpirationReaper, Timer
from odradek.broker.quotas.core.failed_logins import FailedLogins
from odradek.broker.security.audit_log import AuditLog, login_failure
from odradek.broker.security.authentication.mechanisms import AuthenticationFailed
from odradek.broker.security.authentication.sasl_session import Evaluated, IllegalSaslState, SaslSession, SaslState
from odradek.broker.security.principal import USER_TYPE, KafkaPrincipal
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.framing import FixedResponse, RequestHeader, UnsupportedVersion, decode_request, encode_response
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from odradek.protocol.primitives import ProtocolError
from odradek.protocol.schema import Response

log = get_logger(__name__)

_STEPS_MAX = 1000
_VERSIONS_ASKED_MAX = 10
_MECHANISM_CHARACTERS_MAX = 40
SAMPLE_NAMES = (
    "kafka_server_socketservermetrics_successful_authentication_total",
    "kafka_server_socketservermetrics_successful_reauthentication_total",
    "kafka_server_socketservermetrics_failed_authentication_total",
    "kafka_server_socketservermetrics_expired_connections_killed_count",
)


class SaslGate:
    def __init__(
        self,
        reaper: ExpirationReaper,
        failure_delay_ms: int,
        failed_logins: FailedLogins | None = None,
        audit: AuditLog | None = None,
    ) -> None:
        self._audit = audit
        self._reaper = reaper
        self._failed_logins = failed_logins
        self._failure_delay_ms = failure_delay_ms
        self._successes = self._renewals = self._failures = self._expired = 0

    @classmethod
    def of(
        cls,
        config: BrokerConfig,
        reaper: ExpirationReaper,
        failed_logins: FailedLogins | None,
        audit: AuditLog | None,
    ) -> Self:
        return cls(reaper, config.connection_failed_authentication_delay_ms, failed_logins, audit)

    def samples(self) -> Iterable[Sample]:
        counts = (self._successes, self._renewals, self._failures, self._expired)
        return [Sample(name, "counter", count, {}) for name, count in zip(SAMPLE_NAMES, counts, strict=True)]

    def begin(self, request: InboundRequest, session: SaslSession, *, may_block: bool) -> bool | None:
        """Return None to let it pass, True when it is answered or will be, False to be called where it may block."""
        if session.is_evaluating and not may_block:
            request.close_connection("a frame comes before the answer to the token")
            return True
        state = session.state
        if state is SaslState.FAILED:
            return True  # closing waits for the delay: an earlier end would reveal the failure
        key = int.from_bytes(request.frame[:2], "big")
        if state is SaslState.TOKEN:
            return self._take_token(request, session, key, may_block=may_block)
        if key == ApiKey.SASL_HANDSHAKE:
            self._decode(request, session, key, ApiKey.SASL_HANDSHAKE)
            return True
        if state is SaslState.AUTHENTICATED:
            if not session.is_expired:
                return None
            self._expired += 1
            request.close_connection("its session has expired, and the client did not re-authenticate")
            return True
        if key == ApiKey.API_VERSIONS:
            return self._pass_versions(request, session)
        request.close_connection(f"request {key} before authentication")
        return True

    def _pass_versions(self, request: InboundRequest, session: SaslSession) -> bool | None:
        """Let ApiVersions pass, but not without end for a client that doesn't log in."""
        session.versions_asked += 1
        if session.versions_asked > _VERSIONS_ASKED_MAX:
            request.close_connection("ApiVersions again and again before authentication")
            return True
        return None

    def _take_token(self, request: InboundRequest, session: SaslSession, key: int, *, may_block: bool) -> bool:
        if session.may_block and not may_block:
            session.is_evaluating = True
            return False
        if session.raw_tokens:
            self._take_raw_token(request, session)
        else:
            self._decode(request, session, key, ApiKey.SASL_AUTHENTICATE)
        return True

    def _decode(self, request: InboundRequest, session: SaslSession, key: int, expected: ApiKey) -> None:
        if key != expected:
            request.close_connection(f"request {key} during authentication")
            return
        try:
            header, message = decode_request(request.frame, _STEPS_MAX)
        except (UnsupportedVersion, ProtocolError):
            request.close_connection("malformed request before authentication")
            return
        try:
            if isinstance(message, SaslHandshakeRequest):
                self._handshake(request, session, header, message)
            else:
                assert isinstance(message, SaslAuthenticateRequest)
                self._authenticate(request, session, header, message)
        except IllegalSaslState as error:
            request.close_connection(str(error))

    def _handshake(
        self, request: InboundRequest, session: SaslSession, header: RequestHeader, message: SaslHandshakeRequest
    ) -> None:
        if session.handshake(message.mechanism, header.api_version):
            _reply(request, header, _mechanism_accepted(session.mechanisms))
            return
        mechanism = message.mechanism[:_MECHANISM_CHARACTERS_MAX]
        self._count_failure(request, mechanism, "mechanism refused")
        log.info("SASL mechanism refused", connection=request.connection.id, mechanism=mechanism)
        answer = SaslHandshakeResponse(
            error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=list(session.mechanisms)
        )
        _close_after(request, "its SASL mechanism is not enabled")
        _reply(request, header, answer)

    def _authenticate(
        self, request: InboundRequest, session: SaslSession, header: RequestHeader, message: SaslAuthenticateRequest
    ) -> None:
        try:
            evaluated = self._evaluate(request, session, message.auth_bytes)
        except AuthenticationFailed as failure:
            answer = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=str(failure)
            )
            self._fail(request, encode_response(header.correlation_id, answer, header.api_version))
            return
        _reply(
            request,
            header,
            SaslAuthenticateResponse(
                error_message=None, auth_bytes=evaluated.challenge, session_lifetime_ms=evaluated.lifetime_ms
            ),
        )

    def _take_raw_token(self, request: InboundRequest, session: SaslSession) -> None:
        try:
            evaluated = self._evaluate(request, session, bytes(request.frame))
        except AuthenticationFailed:
            self._fail(request, None)
            return
        request.reply([pack(">i", len(evaluated.challenge)), evaluated.challenge])

    def _evaluate(self, request: InboundRequest, session: SaslSession, token: bytes) -> Evaluated:
        """Judge a token. Nothing is left to do for the session when this returns: the answer brings the next frame."""
        is_renewal = session.is_renewal
        try:
            evaluated = session.evaluate(bytes(token))
            if evaluated.is_complete:
                if is_renewal:
                    self._renewals += 1
                else:
                    self._successes += 1
                    if self._failed_logins is not None:
                        self._failed_logins.succeeded(request.connection.client_host)
                if not session.is_needed:
                    request.connection.sasl = None
        except AuthenticationFailed as failure:
            self._count_failure(request, session.mechanism, failure.detail, failure.user)
            log.warning("authentication failed", connection=request.connection.id, reason=failure.detail)
            raise
        finally:
            session.is_evaluating = False
        return evaluated

    def _count_failure(self, request: InboundRequest, mechanism: str, reason: str, user: str = "") -> None:
        self._failures += 1
        connection = request.connection
        if self._failed_logins is not None:
            self._failed_logins.failed(connection.client_host, SYSTEM_CLOCK.monotonic_ms())
        if self._audit is not None:
            principal = str(KafkaPrincipal(USER_TYPE, user)) if user else ""
            host, listener = connection.client_host, connection.listener_name
            self._audit.record_refusal(login_failure(host, listener, f"{mechanism}: {reason}", principal))

    def _fail(self, request: InboundRequest, answer: Sequence[Chunk] | None) -> None:
        rejection = _Rejection(request, answer, self._failure_delay_ms)
        if not self._reaper.add(rejection):
            rejection.expire()


class _Rejection(Timer):
    """Answer and end of a connection whose authentication failed."""

    __slots__ = ("_answer", "_request")

    def __init__(self, request: InboundRequest, answer: Sequence[Chunk] | None, delay_ms: int) -> None:
        super().__init__(delay_ms)
        self._request = request
        self._answer = answer

    def expire(self) -> None:
        if self._answer is None:
            self._request.close_connection("authentication failed")
            return
        _close_after(self._request, "authentication failed")
        self._request.reply(self._answer)


def _close_after(request: InboundRequest, reason: str) -> None:
    """Closes the connection when the answer to the request is sent."""

    def sent(sent_ns: int) -> None:
        request.on_sent = None
        request.close_connection(reason)

    request.on_sent = sent


@lru_cache(maxsize=64)
def _mechanism_accepted(mechanisms: tuple[str, ...]) -> FixedResponse:
    """Answer to each handshake on the listeners with these mechanisms."""
    return FixedResponse(SaslHandshakeResponse(mechanisms=list(mechanisms)))


def _reply(request: InboundRequest, header: RequestHeader, response: Response | FixedResponse) -> None:
    request.reply(encode_response(header.correlation_id, response, header.api_version))
