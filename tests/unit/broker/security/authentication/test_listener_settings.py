"""Security of listeners from the configuration: each has its own, and none starts with less than it says."""

import socket
import ssl
from pathlib import Path
from typing import Any, cast

import pytest

from odradek.base.clock import SYSTEM_CLOCK
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ConfigError
from odradek.broker.network.connection import Accepted, Connection
from odradek.broker.security.authentication.listener_security import ListenerSecurity
from odradek.broker.security.authentication.listener_settings import check_listeners, secured_listeners
from odradek.broker.security.credential_store import KnownCredentials
from odradek.security.certificates import issue, new_authority
from odradek.security.jaas import PLAIN_MODULE


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    directory = tmp_path_factory.mktemp("stores")
    authority = new_authority("CA", 2)
    host = issue(authority, "broker", ["localhost"], 2)
    (directory / "broker.pem").write_bytes(host.key + host.certificate)
    (directory / "ca.pem").write_bytes(authority.certificate)
    return {
        "zookeeper.connect": "zk:2181",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
    }


def secured(settings: dict[str, str]) -> dict[str, ListenerSecurity]:
    config = BrokerConfig.from_properties(settings)
    assert config.warnings == ()
    return secured_listeners(config, KnownCredentials(), SYSTEM_CLOCK)


def test_several_listeners_of_one_protocol_have_settings_of_their_own(stores: dict[str, str]) -> None:
    module = f'{PLAIN_MODULE} required username="b" password="b" user_alice="a";'
    found = secured(
        {
            **stores,
            "listeners": "IN://localhost:1,OUT://localhost:2,APPS://localhost:3,USERS://localhost:4",
            "listener.security.protocol.map": "IN:SSL,OUT:SSL,APPS:SASL_SSL,USERS:SASL_SSL",
            "inter.broker.listener.name": "IN",
            "ssl.client.auth": "requested",
            "listener.name.in.ssl.client.auth": "required",
            "listener.name.in.ssl.enabled.protocols": "TLSv1.3",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.users.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.users.plain.sasl.jaas.config": module,
            "listener.name.users.connections.max.reauth.ms": "60000",
            "listener.name.users.plain.connections.max.reauth.ms": "1000",
        }
    )
    contexts = {name: security.tls.context for name, security in found.items() if security.tls is not None}
    assert {name: context.verify_mode for name, context in contexts.items()} == {
        "IN": ssl.CERT_REQUIRED,
        "OUT": ssl.CERT_OPTIONAL,
        "APPS": ssl.CERT_NONE,
        "USERS": ssl.CERT_NONE,
    }, "on SASL_SSL only the listener's own setting counts"
    assert contexts["IN"].minimum_version is ssl.TLSVersion.TLSv1_3
    assert contexts["OUT"].minimum_version is ssl.TLSVersion.TLSv1_2
    sasl = {name: security.sasl for name, security in found.items() if security.sasl is not None}
    assert {name: list(each.mechanisms) for name, each in sasl.items()} == {
        "APPS": ["SCRAM-SHA-512"],
        "USERS": ["PLAIN", "SCRAM-SHA-256"],
    }
    assert sasl["APPS"].max_reauth_ms == {"SCRAM-SHA-512": 0}
    assert sasl["USERS"].max_reauth_ms == {"PLAIN": 1000, "SCRAM-SHA-256": 60_000}


@pytest.mark.parametrize(
    "settings",
    [
        {"listeners": "SSL://localhost:1", "ssl.keystore.location": "/no/such/file"},
        {"listeners": "SSL://localhost:1", "ssl.client.auth": "perhaps"},
        {"listeners": "SSL://localhost:1", "ssl.client.auth": "required", "ssl.truststore.location": "/no/such/file"},
        {"listeners": "SSL://localhost:1", "ssl.client.auth": "required", "odradek.ssl.crl.location": "/no/such/file"},
        {"listeners": "SSL://localhost:1", "ssl.enabled.protocols": "TLSv1.1"},
        {"listeners": "SSL://localhost:1", "ssl.principal.mapping.rules": "RULE:"},
        {"listeners": "SASL_SSL://localhost:1", "sasl.enabled.mechanisms": "PLAIN"},
        {"listeners": "SASL_SSL://localhost:1", "sasl.enabled.mechanisms": "EXTERNAL"},
        {"listeners": "SASL_SSL://localhost:1", "sasl.enabled.mechanisms": ""},
    ],
)
def test_a_listener_that_can_not_be_secured_stops_the_start(stores: dict[str, str], settings: dict[str, str]) -> None:
    protocol = settings["listeners"].partition(":")[0]
    with pytest.raises(ConfigError):
        check_listeners(
            BrokerConfig.from_properties({**stores, "security.inter.broker.protocol": protocol, **settings})
        )


def test_suites_that_are_named_keep_the_level_of_security(stores: dict[str, str]) -> None:
    suites = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    listener = secured(
        {
            **stores,
            "listeners": "SSL://localhost:1",
            "security.inter.broker.protocol": "SSL",
            "ssl.cipher.suites": suites,
        }
    )["SSL"]
    assert listener.tls is not None
    assert listener.tls.context.security_level >= 2


def test_the_location_of_a_store_is_a_file_of_this_machine(tmp_path: Path, stores: dict[str, str]) -> None:
    for location in (str(tmp_path), "https://example/store.pem", "file:///etc/passwd"):
        with pytest.raises(ConfigError):
            secured({**stores, "listeners": "SSL://localhost:1", "security.inter.broker.protocol": "SSL",
                     "ssl.keystore.location": location})  # fmt: skip


@pytest.mark.parametrize(
    "settings",
    [
        {"ssl.endpoint.identification.algorithm": "http"},
        {"listener.name.ssl.ssl.endpoint.identification.algorithm": "none"},
        {"sasl.mechanism.inter.broker.protocol": "EXTERNAL", "security.inter.broker.protocol": "SASL_SSL"},
    ],
)
def test_what_other_brokers_can_not_be_reached_with_stops_the_start(
    stores: dict[str, str], settings: dict[str, str]
) -> None:
    listeners = {
        "listeners": "SSL://localhost:1,SASL_SSL://localhost:2",
        "security.inter.broker.protocol": "SSL",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    }
    check_listeners(BrokerConfig.from_properties({**stores, **listeners}))
    with pytest.raises(ConfigError):
        check_listeners(BrokerConfig.from_properties({**stores, **listeners, **settings}))


def test_numbers_that_are_no_limits_in_kafka_are_none_here(stores: dict[str, str]) -> None:
    """A session without end, and frames of any size before the login: neither closes every connection."""
    module = f'{PLAIN_MODULE} required username="b" password="b" user_a="x";'
    given = {
        "listeners": "SASL_SSL://localhost:1",
        "security.inter.broker.protocol": "SASL_SSL",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": module,
        "connections.max.reauth.ms": "-5",
        "sasl.server.max.receive.size": "-1",
    }
    sasl = secured({**stores, **given})["SASL_SSL"].sasl
    assert sasl is not None
    ours, theirs = socket.socketpair()
    with ours, theirs:
        accepted = Accepted(ours, "c", "SASL", "SASL_PLAINTEXT", "127.0.0.1", 1, ListenerSecurity(None, sasl))
        connection = Connection(accepted, cast(Any, None), 1_000_000, 0)
        assert connection.reader.max_size == 1_000_000
        assert connection.sasl is not None
        connection.sasl.handshake("PLAIN", 1)
        assert connection.sasl.evaluate(b"\0a\0x").lifetime_ms == 0
        assert not connection.sasl.is_expired
