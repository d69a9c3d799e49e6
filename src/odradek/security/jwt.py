"""JSON Web Tokens in compact form (RFC 7515, 7519): signature and claims of a bearer token. Pure.

One fixed list of algorithms, each bound to one kind of key; a key comes from the key set alone, never from the token.
Texts of errors name what is wrong and show no claims: the token is a secret.
"""

import binascii
import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Any, Never

from odradek.base.value_classes import dataclass
from odradek.security.jwks import ALGORITHMS, KeySet, UnknownKey

_SECONDS_MAX = 1e11
_SCOPES_MAX = 1000


class TokenRefused(Exception):
    """The token is malformed, not signed by a known key, expired, or meant for another audience."""

    def __init__(self, message: str, *, missing_scope: str | None = None) -> None:
        super().__init__(message)
        self.missing_scope = missing_scope
        """The scope that a valid token lacks."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """Claims that a broker asks for, in the order of Kafka's settings `sasl.oauthbearer.*`."""

    audiences: frozenset[str] = frozenset()
    issuer: str | None = None
    clock_skew_s: float = 30
    scope_claim: str = "scope"
    principal_claim: str = "sub"
    required_scopes: frozenset[str] = frozenset()
    """Scopes that an unsecured token must have; Kafka's validator of signed tokens asks for none."""
    requires_issue_time: bool = True
    takes_any_audience: bool = False


@dataclass(frozen=True, slots=True)
class AccessToken:
    principal: str
    expires_ms: int
    issued_ms: int | None = None


def verified(text: str, keys: KeySet, rules: TokenRules, now_ms: int) -> AccessToken:
    """TokenRefused; UnknownKey where the key set has no key for the token, and a newer set may have it."""
    header, claims, signature = _parts(text)
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise TokenRefused("the signature's algorithm is not one of " + ", ".join(ALGORITHMS))
    if "crit" in header:
        raise TokenRefused("the token has critical header parameters, which are not known")
    key_id = header.get("kid")
    if key_id is not None and not isinstance(key_id, str):
        raise TokenRefused("the key id is not a text")
    key = keys.key_for(algorithm, key_id)
    if key is None:
        raise UnknownKey(key_id)
    if not key.verifies(algorithm, text.rpartition(".")[0].encode(), signature):
        raise TokenRefused("the signature is not the one of its key")
    return _judged(claims, rules, now_ms)


def unsecured(text: str, rules: TokenRules, now_ms: int) -> AccessToken:
    """A token without signature, from a listener that accepts them."""
    header, claims, signature = _parts(text)
    if header.get("alg") != "none" or signature:
        raise TokenRefused("the listener takes tokens without signature only")
    return _judged(claims, rules, now_ms)


def lifetime_of(text: str) -> tuple[int | None, int]:
    """Time of issue, if the token has it, and of expiry, in milliseconds. For owners of tokens: nothing is verified."""
    claims = _parts(text)[1]
    expires_s = _time(claims, "exp")
    if expires_s is None:
        raise TokenRefused("the token has no exp")
    issued_s = _time(claims, "iat")
    return (None if issued_s is None else int(issued_s * 1000)), int(expires_s * 1000)


def _parts(text: str) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    parts = text.split(".")
    if len(parts) != 3:
        raise TokenRefused("the token has not three parts")
    return _json_object(parts[0]), _json_object(parts[1]), _decoded(parts[2])


def _decoded(part: str) -> bytes:
    try:
        if not part.isascii() or "=" in part or "+" in part or "/" in part:
            raise ValueError
        return urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (ValueError, binascii.Error):
        raise TokenRefused("a part of the token is not base64url") from None


def _json_object(part: str) -> dict[str, Any]:
    try:
        found = json.loads(_decoded(part), object_pairs_hook=_without_twins, parse_constant=_not_a_number)
    except (ValueError, RecursionError):
        raise TokenRefused("a part of the token is not JSON") from None
    if not isinstance(found, dict):
        raise TokenRefused("a part of the token is not a JSON object")
    return found


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two readers of one token must not see two values."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands there twice")
    return found


def _not_a_number(text: str) -> Never:
    raise ValueError(text)


def _judged(claims: Mapping[str, Any], rules: TokenRules, now_ms: int) -> AccessToken:
    now_s = now_ms / 1000
    expires_s, issued_s, begins_s = _time(claims, "exp"), _time(claims, "iat"), _time(claims, "nbf")
    if expires_s is None:
        raise TokenRefused("the token has no exp")
    if issued_s is None and rules.requires_issue_time:
        raise TokenRefused("the token has no iat")
    if now_s - rules.clock_skew_s >= expires_s:
        raise TokenRefused("the token is expired")
    if begins_s is not None and now_s + rules.clock_skew_s < begins_s:
        raise TokenRefused("the token is not valid yet")
    if any(begin is not None and begin > expires_s for begin in (issued_s, begins_s)):
        raise TokenRefused("the token ends before it begins")
    if not rules.takes_any_audience:
        _check_audience(claims.get("aud"), rules.audiences)
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise TokenRefused("the issuer is another one")
    _check_scopes(claims.get(rules.scope_claim), rules)
    principal = claims.get(rules.principal_claim)
    if not isinstance(principal, str) or not principal.strip():
        raise TokenRefused(f"the claim {rules.principal_claim} is no text, or empty")
    issued_ms = None if issued_s is None else int(issued_s * 1000)
    return AccessToken(principal.strip(), int(expires_s * 1000), issued_ms)


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _SECONDS_MAX:
        raise TokenRefused(f"{name} is not a time")
    return float(value)


def _check_audience(claimed: Any, expected: frozenset[str]) -> None:
    """Refuse a token that names audiences if none is expected, as Kafka does: it was issued for others."""
    audiences = claimed if isinstance(claimed, list) else [] if claimed is None else [claimed]
    if not all(isinstance(audience, str) for audience in audiences):
        raise TokenRefused("aud is neither a text nor a list of texts")
    if not expected and audiences:
        raise TokenRefused("the token is for an audience, and sasl.oauthbearer.expected.audience names none")
    if expected and expected.isdisjoint(audiences):
        raise TokenRefused("the audience is another one")


def _check_scopes(claimed: Any, rules: TokenRules) -> None:
    scopes = claimed if isinstance(claimed, list) else [] if claimed is None else [claimed]
    if len(scopes) > _SCOPES_MAX or not all(isinstance(scope, str) and scope.strip() for scope in scopes):
        raise TokenRefused("the scope is neither a text nor a list of texts")
    words = {word for scope in scopes for word in scope.split()}
    if missing := rules.required_scopes - words:
        raise TokenRefused("a scope is missing", missing_scope=" ".join(sorted(missing)))
