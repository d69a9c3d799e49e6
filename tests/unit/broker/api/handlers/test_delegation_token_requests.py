"""Delegation token requests that are refused: over a connection without an identity, by a token, and with the feature
off. In Kafka's order, which tells a requester what it may not do before it tells that tokens are off.
"""

from types import SimpleNamespace
from typing import Any

import pytest

from odradek.base.errors import ErrorCode
from odradek.broker.api.handlers.create_delegation_token import create_delegation_token
from odradek.broker.api.handlers.describe_delegation_token import describe_delegation_token
from odradek.broker.api.handlers.expire_delegation_token import expire_delegation_token
from odradek.broker.api.handlers.renew_delegation_token import renew_delegation_token
from odradek.broker.security.authorizer.acl_authorizer import AclAuthorizer
from odradek.broker.security.principal import ANONYMOUS, KafkaPrincipal
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from odradek.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from odradek.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from odradek.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest

ALICE = KafkaPrincipal("User", "alice")
CREATE: Any = create_delegation_token
REQUESTS: list[tuple[Any, Any]] = [
    (CREATE, CreateDelegationTokenRequest(max_lifetime_ms=-1)),
    (renew_delegation_token, RenewDelegationTokenRequest(hmac=b"x", renew_period_ms=-1)),
    (expire_delegation_token, ExpireDelegationTokenRequest(hmac=b"x", expiry_time_period_ms=-1)),
    (describe_delegation_token, DescribeDelegationTokenRequest(owners=None)),
]


def context(protocol: str, principal: KafkaPrincipal, tokens: object = None) -> Any:
    authorizer = AclAuthorizer([], allow_everyone_if_no_acl_found=False)
    authorizer.set_acls({})
    connection = SimpleNamespace(security_protocol=protocol, principal=principal, allowed_names=None)
    return SimpleNamespace(
        connection=connection,
        request=SimpleNamespace(connection=connection),
        principal=principal,
        client_host="127.0.0.1",
        header=SimpleNamespace(api_key=ApiKey.CREATE_DELEGATION_TOKEN),
        broker=SimpleNamespace(authorizer=authorizer, security=SimpleNamespace(tokens=tokens)),
    )


@pytest.mark.parametrize(
    ("protocol", "principal"),
    [
        ("PLAINTEXT", ANONYMOUS),
        ("PLAINTEXT", ALICE),
        ("SSL", ANONYMOUS),
        ("SASL_SSL", KafkaPrincipal("User", "alice", token_authenticated=True)),
    ],
)
@pytest.mark.parametrize(("handler", "request_"), REQUESTS)
def test_a_connection_without_an_identity_of_its_own(
    protocol: str, principal: KafkaPrincipal, handler: Any, request_: Any
) -> None:
    answer = handler(request_, context(protocol, principal, tokens=object()))
    assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@pytest.mark.parametrize(("handler", "request_"), REQUESTS)
@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_with_the_feature_off(protocol: str, handler: Any, request_: Any) -> None:
    assert handler(request_, context(protocol, ALICE)).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_an_owner_for_whom_the_requester_may_not_act() -> None:
    request = CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="bob", max_lifetime_ms=-1)
    for tokens in (None, object()):
        answer = CREATE(request, context("SASL_SSL", ALICE, tokens))
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert not answer.hmac


def test_a_renewer_that_is_not_a_user() -> None:
    renewers = [CreatableRenewers(principal_type="Group", principal_name="bob")]
    answer = CREATE(
        CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=-1), context("SASL_SSL", ALICE, object())
    )
    assert answer.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
