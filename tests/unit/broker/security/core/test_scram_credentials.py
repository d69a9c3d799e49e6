"""SCRAM credentials as Kafka writes them, and their store."""

import pytest

from odradek.broker.security.core.scram_credentials import (
    ScramMechanism,
    credential_of_password,
    credential_text,
    parse_credential,
)
from odradek.broker.security.credential_store import KnownCredentials
from odradek.broker.security.principal import ANONYMOUS, KafkaPrincipal
from odradek.broker.zk.znodes import CorruptZnode, EntityConfig

# User "user", password "pencil": the example of RFC 7677, and its server signature's key by two other implementations.
RFC_SALT = bytes.fromhex("5b6d99689d12358e" + "eca04b14 1236fa81".replace(" ", ""))


def test_a_credential_is_derived_as_rfc_7677_says() -> None:
    credential = credential_of_password(ScramMechanism.SCRAM_SHA_256, "pencil", RFC_SALT, 4096)
    assert credential_text(credential) == (
        "salt=W22ZaJ0SNY7soEsUEjb6gQ==,"
        "stored_key=WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=,"
        "server_key=wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=,"
        "iterations=4096"
    )


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_text_and_credential_are_the_same(mechanism: ScramMechanism) -> None:
    credential = credential_of_password(mechanism, "päss,=wörd", b"salt", 4096)
    assert parse_credential(credential_text(credential)) == credential


@pytest.mark.parametrize(
    "text",
    [
        "",
        "salt=YQ==",
        "salt=YQ==,stored_key=YQ==,server_key=YQ==,iterations=x",
        "salt=YQ==,stored_key=CANARY!,server_key=YQ==,iterations=4096",
        "salt=YQ==,stored_key=YQ==,server_key=YQ==,iterations=4096,salt=YQ==",
    ],
)
def test_a_broken_credential_is_refused_without_a_word_of_it(text: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_credential(text)
    assert "CANARY" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_credential_is_never_shown() -> None:
    credential = credential_of_password(ScramMechanism.SCRAM_SHA_512, "CANARY", b"NaCl", 4096)
    assert "NaCl" not in repr(credential)
    assert "key" not in repr(credential)


def test_credentials_are_found_by_mechanism_and_user_and_go_with_the_user() -> None:
    store = KnownCredentials()
    assert store.scram_credential("SCRAM-SHA-256", "a b") is None
    credential = credential_of_password(ScramMechanism.SCRAM_SHA_256, "p", b"s", 4096)
    store.set_users(
        {
            "a%20b": {"SCRAM-SHA-256": credential_text(credential), "producer_byte_rate": "1"},
            "a%20b/clients/c": {"SCRAM-SHA-256": credential_text(credential)},
            "<default>": {"SCRAM-SHA-256": credential_text(credential)},
            "broken": {"SCRAM-SHA-256": "salt=CANARY"},
        }
    )
    assert store.scram_credential("SCRAM-SHA-256", "a b") == credential
    assert store.scram_credential("SCRAM-SHA-512", "a b") is None
    assert store.scram_credential("SCRAM-SHA-256", "<default>") is None
    assert store.scram_credential("SCRAM-SHA-256", "broken") is None
    store.set_users({})
    assert store.scram_credential("SCRAM-SHA-256", "a b") is None


def test_a_broken_node_with_credentials_is_reported_without_its_content() -> None:
    with pytest.raises(CorruptZnode) as corrupt:
        EntityConfig.decode("users", "alice", b'{"version":1,"config":{"SCRAM-SHA-256":["CANARY"]}}')
    assert "CANARY" not in str(corrupt.value)
    assert "/config/users/alice" in str(corrupt.value)


def test_principals() -> None:
    assert str(ANONYMOUS) == "User:ANONYMOUS"
    assert KafkaPrincipal.parse("User:CN=a:b") == KafkaPrincipal("User", "CN=a:b")
    assert KafkaPrincipal.parse("Group:") == KafkaPrincipal("Group", "")
    assert KafkaPrincipal("User", "a", token_authenticated=True) == KafkaPrincipal("User", "a")
    for text in ("", "User", ":name"):
        with pytest.raises(ValueError):
            KafkaPrincipal.parse(text)
