"""OAUTHBEARER of the broker's side (RFC 7628), as Kafka does it: one token, and an answer.

A refused token is answered with `{"status":"invalid_token"}`; the client acknowledges that with one byte, and then the
authentication fails. Extensions are taken as they come, as by Kafka's own handlers, and used for nothing.
"""

from collections.abc import Callable

from odradek.broker.security.authentication.issuer_keys import IssuerKeys
from odradek.broker.security.authentication.mechanisms import AuthenticationFailed, Step
from odradek.broker.security.principal import USER_TYPE, KafkaPrincipal
from odradek.security.jwks import UnknownKey
from odradek.security.jwt import AccessToken, TokenRefused, TokenRules, unsecured, verified
from odradek.security.oauth_messages import ACKNOWLEDGED, OAuthMessageError, parse_client_initial, refusal

Validate = Callable[[str], AccessToken]
"""Check of a token. TokenRefused has the reason."""


def signed_tokens(keys: IssuerKeys, rules: TokenRules, now_ms: Callable[[], int]) -> Validate:
    def validate(text: str) -> AccessToken:
        try:
            return verified(text, keys.current, rules, now_ms())
        except UnknownKey as unknown:
            keys.ask_for(unknown.key_id)
            raise TokenRefused(str(unknown)) from None

    return validate


def unsecured_tokens(rules: TokenRules, now_ms: Callable[[], int]) -> Validate:
    return lambda text: unsecured(text, rules, now_ms())


class OAuthBearerServer:
    may_block = True  # the check of a signature takes a tenth of a millisecond

    def __init__(self, validate: Validate) -> None:
        self._validate = validate
        self._refused: TokenRefused | None = None
        self._is_over = False

    def evaluate(self, token: bytes) -> Step:
        if self._refused is not None:
            raise AuthenticationFailed(
                _refusal_json(self._refused),
                str(self._refused) if token == ACKNOWLEDGED else "another token after a refused one",
            )
        if self._is_over:
            raise AuthenticationFailed(_INVALID, "the exchange is over")
        self._is_over = True
        try:
            initial = parse_client_initial(token)
        except OAuthMessageError as error:
            raise AuthenticationFailed(_INVALID, str(error)) from None
        try:
            access = self._validate(initial.token)
        except TokenRefused as refused:
            self._refused = refused
            return Step(_refusal_json(refused).encode())
        if initial.authorization_id and initial.authorization_id != access.principal:
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from the token's "
                "principal name"
            )
        return Step(b"", KafkaPrincipal(USER_TYPE, access.principal), access.expires_ms)


_INVALID = "Authentication failed during authentication due to invalid credentials with SASL mechanism OAUTHBEARER"


def _refusal_json(refused: TokenRefused) -> str:
    if refused.missing_scope is not None:
        return refusal("insufficient_scope", refused.missing_scope)
    return refusal("invalid_token")
