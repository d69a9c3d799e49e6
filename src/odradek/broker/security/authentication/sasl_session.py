"""The SASL state of one connection: the requests that the client may send next, and their answers.

    HANDSHAKE ──▶ TOKEN ──▶ AUTHENTICATED ──▶ TOKEN (re-authentication) ──▶ AUTHENTICATED
                    │
                    └──▶ FAILED: no further answer

The requests of a connection are processed one after the other, so there is no lock.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from odradek.base.clock import Clock
from odradek.base.value_classes import dataclass
from odradek.broker.security.authentication.mechanisms import AuthenticationFailed, SaslServer, ServerFactory
from odradek.broker.security.principal import KafkaPrincipal

if TYPE_CHECKING:
    from odradek.broker.security.authentication.issuer_keys import IssuerKeys

MIN_REAUTHENTICATION_INTERVAL_MS = 1000
UNLIMITED_RECEIVE = -1


class SaslState(Enum):
    HANDSHAKE = "the client has to name a mechanism"
    TOKEN = "the client has to send a token"
    AUTHENTICATED = "requests are served until the session ends"
    FAILED = "authentication failed, the connection will be closed"


class IllegalSaslState(Exception):
    """The request is not allowed now."""


@dataclass(frozen=True, slots=True)
class SaslListener:
    """SASL settings of one listener."""

    mechanisms: Mapping[str, ServerFactory]
    max_reauth_ms: Mapping[str, int]
    """Limits by mechanism; 0 or less: a session doesn't end."""
    max_receive_bytes: int
    """The most that a frame has before authentication; -1: as much as afterwards."""
    clock: Clock
    issuer_keys: "IssuerKeys | None" = None
    """Keys of the issuer of OAUTHBEARER's tokens."""

    def new_session(self, on_authenticated: Callable[[KafkaPrincipal], None]) -> "SaslSession":
        return SaslSession(self, on_authenticated)


class Evaluated(NamedTuple):
    challenge: bytes
    is_complete: bool
    lifetime_ms: int = 0


class SaslSession:
    __slots__ = (
        "_began_ms",
        "_expires_ms",
        "_listener",
        "_mechanism",
        "_on_authenticated",
        "_principal",
        "_server",
        "is_evaluating",
        "raw_tokens",
        "state",
        "versions_asked",
    )

    def __init__(self, listener: SaslListener, on_authenticated: Callable[[KafkaPrincipal], None]) -> None:
        self._listener = listener
        self._on_authenticated = on_authenticated
        self.state = SaslState.HANDSHAKE
        self.raw_tokens = False
        """Tokens come as bare frames, because the handshake was of version 0."""
        self.is_evaluating = False
        """A token is with a handler thread; another frame must not overtake it."""
        self.versions_asked = 0
        """ApiVersions requests before authentication."""
        self._mechanism = ""
        self._server: SaslServer | None = None
        self._principal: KafkaPrincipal | None = None
        self._began_ms = 0
        self._expires_ms: int | None = None

    @property
    def mechanisms(self) -> tuple[str, ...]:
        return tuple(self._listener.mechanisms)

    @property
    def mechanism(self) -> str:
        """The mechanism that the client chose; empty until then."""
        return self._mechanism

    @property
    def may_block(self) -> bool:
        """Return whether the next token takes long."""
        return self._server is not None and self._server.may_block

    @property
    def is_needed(self) -> bool:
        """Return whether requests have to be checked: not if the client is authenticated without a time limit."""
        return self.state is not SaslState.AUTHENTICATED or self._expires_ms is not None

    @property
    def is_renewal(self) -> bool:
        """Return whether the client is known already, and authenticates again."""
        return self._principal is not None

    @property
    def is_expired(self) -> bool:
        return self._expires_ms is not None and self._listener.clock.monotonic_ms() >= self._expires_ms

    def handshake(self, mechanism: str, version: int) -> bool:
        """Return whether the mechanism is one of the listener's. IllegalSaslState: it comes at the wrong time."""
        if self.state is SaslState.AUTHENTICATED:
            if self._listener.clock.monotonic_ms() - self._began_ms < MIN_REAUTHENTICATION_INTERVAL_MS:
                raise IllegalSaslState("re-authentication comes too early")
        elif self.state is not SaslState.HANDSHAKE:
            raise IllegalSaslState("a handshake is not expected now")
        factory = self._listener.mechanisms.get(mechanism)
        if factory is None or (self._mechanism and mechanism != self._mechanism):
            self.state = SaslState.FAILED
            return False
        self._mechanism = mechanism
        self._server = factory()
        self.raw_tokens = version == 0
        self.state = SaslState.TOKEN
        return True

    def evaluate(self, token: bytes) -> Evaluated:
        """AuthenticationFailed: the client has not proved its identity."""
        if self.state is not SaslState.TOKEN or self._server is None:
            raise IllegalSaslState("a token is not expected now")
        try:
            step = self._server.evaluate(token)
            if step.principal is None:
                return Evaluated(step.challenge, is_complete=False)
            if self._principal is not None and step.principal != self._principal:
                raise AuthenticationFailed("Cannot change principals during re-authentication")
        except AuthenticationFailed:
            self.state = SaslState.FAILED
            raise
        lifetime_ms = self._complete(step.principal, step.expires_ms)
        return Evaluated(step.challenge, is_complete=True, lifetime_ms=lifetime_ms)

    def _complete(self, principal: KafkaPrincipal, credential_expires_ms: int | None) -> int:
        clock = self._listener.clock
        limits = []
        if (max_ms := self._listener.max_reauth_ms.get(self._mechanism, 0)) > 0:
            limits.append(max_ms)
        if credential_expires_ms is not None:
            limits.append(max(0, credential_expires_ms - clock.now_ms()))
        self._server = None
        self._principal = principal
        self._began_ms = clock.monotonic_ms()
        self._expires_ms = self._began_ms + min(limits) if limits else None
        self._on_authenticated(principal)
        self.state = SaslState.AUTHENTICATED
        return min(limits) if limits else 0
