"""Delegation tokens: secrets of limited life that authenticate as their owner. Pure.

The secret of a token (its HMAC) is made from its id and `delegation.token.secret.key`, which all brokers share, so that
ZooKeeper holds no secret. A client proves possession by SCRAM, with the HMAC in base64 as the password.
"""

import hmac
from base64 import b64encode
from dataclasses import replace

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.value_classes import dataclass
from odradek.broker.security.principal import KafkaPrincipal


@dataclass(frozen=True, slots=True)
class DelegationToken:
    id: str
    owner: KafkaPrincipal
    requester: KafkaPrincipal
    """The principal that created it, which may differ from the owner."""
    renewers: tuple[KafkaPrincipal, ...]
    issue_ms: int
    max_ms: int
    """No renewal goes beyond it."""
    expiry_ms: int

    def is_expired(self, now_ms: int) -> bool:
        return self.max_ms < now_ms or self.expiry_ms < now_ms

    def belongs_to(self, principal: KafkaPrincipal) -> bool:
        return principal == self.owner or principal in self.renewers


@dataclass(frozen=True, slots=True)
class TokenLifetimes:
    max_ms: int
    renewal_ms: int


def hmac_of(token_id: str, secret_key: bytes) -> bytes:
    return hmac.digest(secret_key, token_id.encode(), "sha512")


def password_of(token_hmac: bytes) -> str:
    return b64encode(token_hmac).decode()


def created(
    token_id: str,
    owner: KafkaPrincipal,
    requester: KafkaPrincipal,
    renewers: tuple[KafkaPrincipal, ...],
    *,
    asked_max_ms: int,
    lifetimes: TokenLifetimes,
    now_ms: int,
) -> DelegationToken:
    """`asked_max_ms` of 0 or less asks for the longest life that the broker allows."""
    max_ms = now_ms + (lifetimes.max_ms if asked_max_ms <= 0 else min(asked_max_ms, lifetimes.max_ms))
    expiry_ms = min(max_ms, now_ms + lifetimes.renewal_ms)
    return DelegationToken(token_id, owner, requester, renewers, now_ms, max_ms, expiry_ms)


def renewed(
    token: DelegationToken, principal: KafkaPrincipal, period_ms: int, lifetimes: TokenLifetimes, now_ms: int
) -> DelegationToken:
    """A period below 0 asks for the broker's default. KafkaError for a stranger, or a token that is over."""
    _check(token, principal, now_ms)
    period_ms = lifetimes.renewal_ms if period_ms < 0 else period_ms
    return replace(token, expiry_ms=min(token.max_ms, now_ms + period_ms))


def expired(token: DelegationToken, principal: KafkaPrincipal, period_ms: int, now_ms: int) -> DelegationToken | None:
    """Return the token with its new expiry; None if it expires at once (a period below 0)."""
    if period_ms < 0:
        _check_owner(token, principal)
        return None
    _check(token, principal, now_ms)
    return replace(token, expiry_ms=min(token.max_ms, now_ms + period_ms))


def _check(token: DelegationToken, principal: KafkaPrincipal, now_ms: int) -> None:
    _check_owner(token, principal)
    if token.is_expired(now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)


def _check_owner(token: DelegationToken, principal: KafkaPrincipal) -> None:
    if not token.belongs_to(principal):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
