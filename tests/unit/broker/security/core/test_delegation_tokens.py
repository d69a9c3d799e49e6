"""Delegation tokens: their lives, their owners, their secrets and the login by them."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from odradek.base.clock import SYSTEM_CLOCK
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.security.core.delegation_tokens import (
    DelegationToken,
    TokenLifetimes,
    created,
    expired,
    hmac_of,
    password_of,
    renewed,
)
from odradek.broker.security.core.scram_credentials import ScramMechanism, credential_of_password
from odradek.broker.security.known_tokens import KnownTokens, token_secret_key
from odradek.broker.security.principal import KafkaPrincipal
from odradek.broker.zk.stores.tokens import TokenNodes
from odradek.broker.zk.znodes.tokens import Tokens

ALICE, BOB, EVE = (KafkaPrincipal("User", name) for name in ("alice", "bob", "eve"))
LIFETIMES = TokenLifetimes(max_ms=1000, renewal_ms=100)


def token(asked_max_ms: int = -1, now_ms: int = 10_000) -> DelegationToken:
    return created("id", ALICE, ALICE, (BOB,), asked_max_ms=asked_max_ms, lifetimes=LIFETIMES, now_ms=now_ms)


def refusal(error: pytest.ExceptionInfo[KafkaError]) -> ErrorCode:
    return error.value.code


def test_a_token_lives_no_longer_than_the_broker_allows() -> None:
    assert (token().max_ms, token().expiry_ms) == (11_000, 10_100)
    assert (token(0).max_ms, token(5000).max_ms) == (11_000, 11_000)
    assert (token(50).max_ms, token(50).expiry_ms) == (10_050, 10_050)


def test_a_token_whose_renewers_fill_a_node_is_refused() -> None:
    """ZooKeeper ends the connection of a broker that writes more than a megabyte, each time that it is tried."""
    written: list[str] = []
    access: Any = SimpleNamespace(
        put=lambda path, content: written.append(path), create_sequential=lambda path, content: None
    )
    nodes = TokenNodes(access)
    renewers = tuple(KafkaPrincipal("User", f"{number}" + "r" * 32_000) for number in range(3))
    with pytest.raises(KafkaError) as error:
        nodes.write_token(replace(token(), renewers=renewers))
    assert refusal(error) is ErrorCode.INVALID_REQUEST
    assert not written
    nodes.write_token(replace(token(), renewers=renewers[:1]))
    assert written


def test_owner_and_renewers_renew_up_to_the_longest_life() -> None:
    assert renewed(token(), ALICE, -1, LIFETIMES, 10_050).expiry_ms == 10_150
    assert renewed(token(), BOB, 500, LIFETIMES, 10_050).expiry_ms == 10_550
    assert renewed(token(), BOB, 10**9, LIFETIMES, 10_050).expiry_ms == 11_000
    with pytest.raises(KafkaError) as error:
        renewed(token(), EVE, -1, LIFETIMES, 10_050)
    assert refusal(error) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    with pytest.raises(KafkaError) as error:
        renewed(token(), ALICE, -1, LIFETIMES, 10_101)
    assert refusal(error) is ErrorCode.DELEGATION_TOKEN_EXPIRED


def test_a_token_is_ended_at_once_or_later() -> None:
    assert expired(token(), BOB, -1, 99_999) is None, "also one that is over"
    ended = expired(token(), ALICE, 10, 10_000)
    assert ended is not None
    assert ended.expiry_ms == 10_010
    with pytest.raises(KafkaError) as error:
        expired(token(), EVE, -1, 10_000)
    assert refusal(error) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


def test_a_login_by_a_token_is_its_owners_and_ends_with_it() -> None:
    known = KnownTokens(b"secret", SYSTEM_CLOCK)
    living = token(now_ms=SYSTEM_CLOCK.now_ms() + 10**6)
    known.put("id", living)
    identity = known.identity("SCRAM-SHA-256", "id")
    assert identity is not None
    assert identity.principal == ALICE
    assert identity.principal.token_authenticated
    assert identity.expires_ms == living.expiry_ms
    password = password_of(hmac_of("id", b"secret"))
    assert identity.credential == credential_of_password(
        ScramMechanism.SCRAM_SHA_256, password, identity.credential.salt, 4096
    )
    assert known.with_hmac(hmac_of("id", b"secret")) == living
    assert known.with_hmac(hmac_of("id", b"other")) is None
    known.put("id", token(now_ms=1))
    assert known.identity("SCRAM-SHA-256", "id") is None, "expired"
    known.put("id", None)
    assert known.all() == []


@pytest.mark.parametrize("key", ["delegation.token.secret.key", "delegation.token.master.key"])
def test_the_secrets_of_tokens_come_from_the_configured_key(key: str) -> None:
    """And not from the way in which a password is shown, which is the same everywhere."""
    config = BrokerConfig.from_properties({"zookeeper.connect": "127.0.0.1:2181", key: "s3cret"})
    assert token_secret_key(config) == b"s3cret"


def test_without_a_key_there_are_no_tokens() -> None:
    for settings in ({}, {"delegation.token.secret.key": ""}):
        config = BrokerConfig.from_properties({"zookeeper.connect": "127.0.0.1:2181", **settings})
        assert token_secret_key(config) is None


def test_a_node_holds_no_secret_and_reads_back() -> None:
    made = created(
        "a-b_c",
        KafkaPrincipal("User", "CN=ä b"),
        BOB,
        (BOB, EVE),
        asked_max_ms=-1,
        lifetimes=LIFETIMES,
        now_ms=5,
    )
    content = Tokens.encode(made)
    assert b"User%3ACN%3D%C3%A4%20b" in content
    assert Tokens.decode("a-b_c", content) == made
