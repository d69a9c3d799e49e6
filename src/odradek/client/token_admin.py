"""Delegation tokens, for the tools: create, renew, expire and describe them. Any broker serves these requests."""

from collections.abc import Sequence
from dataclasses import field

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.value_classes import dataclass
from odradek.client.cluster_client import ClusterClient
from odradek.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from odradek.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from odradek.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from odradek.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

_MESSAGES = {
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL "
    "channels and on delegation token authenticated channels.",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "Delegation Token feature is not enabled.",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "Delegation Token is not found on server.",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "Specified Principal is not valid Owner/Renewer.",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "Delegation Token is expired.",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "Delegation Token authorization failed.",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "Supplied principalType is not supported.",
}
Principal = tuple[str, str]
"""Type and name."""


@dataclass(frozen=True, slots=True)
class Token:
    id: str
    hmac: bytes = field(repr=False)
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_ms: int
    expiry_ms: int
    max_ms: int


def create_token(
    client: ClusterClient, renewers: Sequence[Principal], max_life_ms: int, owner: Principal | None = None
) -> Token:
    request = CreateDelegationTokenRequest(
        owner_principal_type=owner[0] if owner else None,
        owner_principal_name=owner[1] if owner else None,
        renewers=[CreatableRenewers(principal_type=kind, principal_name=name) for kind, name in renewers],
        max_lifetime_ms=max_life_ms,
    )
    made = client.ask_any(request, CreateDelegationTokenResponse)
    _raise_for(made.error_code)
    return Token(
        made.token_id,
        bytes(made.hmac),
        f"{made.principal_type}:{made.principal_name}",
        f"{made.token_requester_principal_type}:{made.token_requester_principal_name}",
        tuple(f"{kind}:{name}" for kind, name in renewers),
        made.issue_timestamp_ms,
        made.expiry_timestamp_ms,
        made.max_timestamp_ms,
    )


def renew_token(client: ClusterClient, token_hmac: bytes, period_ms: int) -> int:
    """Return the new time of its end."""
    request = RenewDelegationTokenRequest(hmac=token_hmac, renew_period_ms=period_ms)
    answer = client.ask_any(request, RenewDelegationTokenResponse)
    _raise_for(answer.error_code)
    return int(answer.expiry_timestamp_ms)


def expire_token(client: ClusterClient, token_hmac: bytes, period_ms: int) -> int:
    """Return the new time of its end."""
    request = ExpireDelegationTokenRequest(hmac=token_hmac, expiry_time_period_ms=period_ms)
    answer = client.ask_any(request, ExpireDelegationTokenResponse)
    _raise_for(answer.error_code)
    return int(answer.expiry_timestamp_ms)


def describe_tokens(client: ClusterClient, owners: Sequence[Principal] = ()) -> list[Token]:
    """Return the tokens of these owners or renewers, or all that may be seen."""
    named = [DescribeDelegationTokenOwner(principal_type=kind, principal_name=name) for kind, name in owners]
    answer = client.ask_any(DescribeDelegationTokenRequest(owners=named or None), DescribeDelegationTokenResponse)
    _raise_for(answer.error_code)
    return [
        Token(
            token.token_id,
            bytes(token.hmac),
            f"{token.principal_type}:{token.principal_name}",
            f"{token.token_requester_principal_type}:{token.token_requester_principal_name}",
            tuple(f"{renewer.principal_type}:{renewer.principal_name}" for renewer in token.renewers),
            token.issue_timestamp,
            token.expiry_timestamp,
            token.max_timestamp,
        )
        for token in answer.tokens
    ]


def _raise_for(code: int) -> None:
    if code != ErrorCode.NONE:
        raise KafkaError(ErrorCode(code), _MESSAGES.get(ErrorCode(code), ""))
