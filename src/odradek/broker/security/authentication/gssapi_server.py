"""GSSAPI of the broker's side (RFC 4752), as Kafka does it: Kerberos 5, authentication without a security layer.

    CONTEXT ──▶ OFFER_DUE ──▶ CHOICE ──▶ OVER
       └─────────────────────────▲        the offer follows at once where Kerberos has no token for the client

The user is the ticket's principal, made short by `sasl.kerberos.principal.to.local.rules`. The authorization id that a
client sends is ignored, as by Kafka.
"""

from collections.abc import Callable, Mapping
from enum import Enum

from odradek.base.config.broker_config import BrokerConfig
from odradek.broker.security.authentication.mechanisms import AuthenticationFailed, Step
from odradek.broker.security.principal import USER_TYPE, KafkaPrincipal
from odradek.security.distinguished_names import NoMatchingRule
from odradek.security.kerberos import (
    NO_LAYER,
    ROUNDS_MAX,
    BrokerCredentials,
    KerberosError,
    SecurityContext,
    service_name,
)
from odradek.security.kerberos_keys import RULES_KEY, SERVICE_KEY
from odradek.security.kerberos_names import ShortNames

MECHANISM = "GSSAPI"


class _State(Enum):
    CONTEXT = "tokens of Kerberos are exchanged"
    OFFER_DUE = "the client has to send an empty token"
    CHOICE = "the client has to choose a security layer"
    OVER = "nothing more is taken"


class GssapiServer:
    may_block = True  # a ticket is decrypted, and written to the replay cache

    def __init__(self, context: SecurityContext, short_names: ShortNames) -> None:
        self._context = context
        self._short_names = short_names
        self._state = _State.CONTEXT
        self._rounds = 0
        self._peer = ""

    def evaluate(self, token: bytes) -> Step:
        state, self._state = self._state, _State.OVER
        try:
            match state:
                case _State.CONTEXT:
                    return self._take_ticket(token)
                case _State.OFFER_DUE:
                    if token:
                        raise KerberosError("an empty token is expected")
                    return self._offer()
                case _State.CHOICE:
                    return self._take_choice(token)
                case _State.OVER:
                    raise KerberosError("the exchange is over")
        except (KerberosError, NoMatchingRule, ValueError) as error:
            raise AuthenticationFailed(_INVALID, str(error)) from None

    def _take_ticket(self, token: bytes) -> Step:
        self._rounds += 1
        if not token or self._rounds > ROUNDS_MAX:
            raise KerberosError("a token is expected" if not token else "the exchange does not come to an end")
        answer = self._context.step(token)
        if not self._context.is_complete:
            self._state = _State.CONTEXT
            return Step(answer)
        self._peer = self._context.peer
        if not answer:
            return self._offer()
        self._state = _State.OFFER_DUE
        return Step(answer)

    def _offer(self) -> Step:
        """Offer no security layer, and so no size of its messages."""
        self._state = _State.CHOICE
        return Step(self._context.wrap(bytes([NO_LAYER, 0, 0, 0])))

    def _take_choice(self, token: bytes) -> Step:
        choice = self._context.unwrap(token)
        if len(choice) < 4 or choice[0] != NO_LAYER:
            raise KerberosError("the client chooses a security layer that is not offered")
        return Step(b"", KafkaPrincipal(USER_TYPE, self._short_names.name_of(self._peer)))


_INVALID = "Authentication failed during authentication due to invalid credentials with SASL mechanism GSSAPI"


def gssapi_servers(config: BrokerConfig, listener_name: str, options: Mapping[str, str]) -> Callable[[], GssapiServer]:
    """Return the maker of one server for each exchange on a listener. ConfigError names the missing setting."""
    service = config.for_listener(listener_name, SERVICE_KEY)
    service_name(options, None if service is None else str(service))
    credentials = BrokerCredentials(options)
    rules = config.for_listener(listener_name, RULES_KEY)
    assert isinstance(rules, tuple)
    short_names = ShortNames(rules, credentials.default_realm)
    return lambda: GssapiServer(credentials.accept(), short_names)
