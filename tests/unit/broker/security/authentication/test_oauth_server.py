"""OAUTHBEARER of the broker's side: exchange, sessions, keys that change, settings that are refused."""

import json
import time
from pathlib import Path

import pytest

from odradek.base.clock import SYSTEM_CLOCK
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.login_classes import LOGINS, UNSECURED_VALIDATOR, VALIDATORS
from odradek.base.errors import ConfigError
from odradek.broker.api.sasl_gate import SaslGate
from odradek.broker.purgatory.reaper import ExpirationReaper
from odradek.broker.security.authentication import issuer_keys
from odradek.broker.security.authentication.issuer_keys import FetchedKeys, FileKeys, IssuerKeys, RefreshTimes
from odradek.broker.security.authentication.listener_settings import check_listeners, secured_listeners
from odradek.broker.security.authentication.mechanisms import AuthenticationFailed
from odradek.broker.security.authentication.oauth_server import OAuthBearerServer, signed_tokens
from odradek.broker.security.authentication.sasl_session import SaslListener, SaslSession, SaslState
from odradek.broker.security.credential_store import KnownCredentials
from odradek.broker.security.principal import KafkaPrincipal
from odradek.security.https import Provider, provider_url
from odradek.security.jaas import OAUTH_MODULE
from odradek.security.jwks import KeySet, parse_key_set
from odradek.security.jwt import TokenRules
from odradek.security.oauth_messages import client_initial
from token_issuer import Issuer, serving, unsigned
from waiting import eventually

ISSUER = Issuer()
KEYS_1 = parse_key_set(json.dumps(ISSUER.key_set).encode())


class Keys:
    """Fixed keys, which remember what they were asked for."""

    def __init__(self, current: KeySet = KEYS_1) -> None:
        self.current = current
        self.asked: list[str | None] = []

    def ask_for(self, key_id: str | None) -> None:
        self.asked.append(key_id)

    def start(self) -> None: ...

    def stop(self) -> None: ...


def session_of(keys: IssuerKeys, max_reauth_ms: int = 0) -> SaslSession:
    validate = signed_tokens(keys, TokenRules(), SYSTEM_CLOCK.now_ms)
    factories = {"OAUTHBEARER": lambda: OAuthBearerServer(validate)}
    listener = SaslListener(factories, {"OAUTHBEARER": max_reauth_ms}, 10_000, SYSTEM_CLOCK)
    session = listener.new_session(lambda principal: None)
    assert session.handshake("OAUTHBEARER", 1)
    return session


def test_a_session_lasts_as_long_as_its_token() -> None:
    session = session_of(Keys())
    assert session.may_block, "the signature is not checked on a network thread"
    evaluated = session.evaluate(client_initial(ISSUER.token({"exp": time.time() + 60}), {"pool": "x"}))
    assert evaluated.is_complete
    assert 50_000 < evaluated.lifetime_ms <= 60_000
    assert session.is_needed
    assert session_of(Keys(), 5_000).evaluate(client_initial(ISSUER.token(), {})).lifetime_ms == 5_000


def test_a_refused_token_is_told_and_then_the_exchange_fails() -> None:
    for answer in (b"\x01", client_initial(ISSUER.token(), {})):
        session = session_of(Keys())
        evaluated = session.evaluate(client_initial(ISSUER.token({"exp": 5}), {}))
        assert (evaluated.challenge, evaluated.is_complete) == (b'{"status":"invalid_token"}', False)
        with pytest.raises(AuthenticationFailed) as failed:
            session.evaluate(answer)
        assert str(failed.value) == '{"status":"invalid_token"}'
        assert session.state is SaslState.FAILED


@pytest.mark.parametrize("data", [b"", b"\x01", b"n,,\x01auth=Bearer \x01\x01", b"\0alice\0secret"])
def test_a_malformed_message_fails(data: bytes) -> None:
    session = session_of(Keys())
    with pytest.raises(AuthenticationFailed, match="invalid credentials with SASL mechanism OAUTHBEARER"):
        session.evaluate(data)


def test_the_authorization_id_is_the_principal() -> None:
    message = client_initial(ISSUER.token(), {}).replace(b"n,,", b"n,a=%b,")
    assert session_of(Keys()).evaluate(message.replace(b"%b", b"alice")).is_complete
    with pytest.raises(AuthenticationFailed, match="different from the token's principal name"):
        session_of(Keys()).evaluate(message.replace(b"%b", b"bob"))


def test_a_token_of_an_unknown_key_asks_for_newer_keys() -> None:
    keys = Keys()
    assert not session_of(keys).evaluate(client_initial(Issuer("two").token(), {})).is_complete
    assert keys.asked == ["two-ec"]
    assert not session_of(Keys(KeySet())).evaluate(client_initial(ISSUER.token(), {})).is_complete, "no keys yet"


def test_nobody_becomes_another_by_another_token() -> None:
    session = session_of(Keys())
    session.evaluate(client_initial(ISSUER.token(), {}))
    session._began_ms -= 2_000
    session.handshake("OAUTHBEARER", 1)
    with pytest.raises(AuthenticationFailed, match="Cannot change principals"):
        session.evaluate(client_initial(ISSUER.token({"sub": "bob"}), {}))


# ---- keys


def test_keys_are_fetched_again_when_a_token_names_a_new_one() -> None:
    with serving(ISSUER) as endpoints:
        endpoints.failures = 1
        provider = Provider(provider_url("k", f"{endpoints.url}/jwks"))
        keys = FetchedKeys(provider, "L", RefreshTimes(3_600_000, 10, 20), SYSTEM_CLOCK)
        assert keys.current == KeySet()
        keys.start()
        try:
            eventually(lambda: keys.current == KEYS_1)
            endpoints.issuer = Issuer("two")
            keys.ask_for("two-ec")
            eventually(lambda: keys.current.key_for("ES256", "two-ec") is not None)
            endpoints.failures = 10**6
            keys.ask_for("three")
            eventually(lambda: len(endpoints.asked) > 5)
            assert keys.current.keys, "the former ones stay"
        finally:
            keys.stop()


def test_tokens_that_anybody_makes_up_bring_few_fetches() -> None:
    provider = Provider(provider_url("k", "https://issuer.example/jwks"))
    keys = FetchedKeys(provider, "L", RefreshTimes(3_600_000, 10, 20), SYSTEM_CLOCK)
    for n in range(10_000):
        keys.ask_for(f"key-{n}")
        keys.ask_for("x" * 2_000)
        keys.ask_for(None)
    assert len(keys._asked) == issuer_keys._ASKED_MAX


def test_a_file_of_keys_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuer_keys, "_FILE_CHECK_MS", 10)
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps(ISSUER.key_set))
    keys = FileKeys(Provider(provider_url("k", f"file://{file}")), "L")
    keys.start()
    try:
        file.write_text("broken")
        file.write_text(json.dumps(Issuer("two").key_set))
        eventually(lambda: keys.current.key_for("ES256", "two-ec") is not None)
    finally:
        keys.stop()


# ---- settings

BASE = {
    "zookeeper.connect": "zk:2181",
    "listeners": "TOKENS://localhost:9092",
    "listener.security.protocol.map": "TOKENS:SASL_PLAINTEXT",
    "inter.broker.listener.name": "TOKENS",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    "listener.name.tokens.oauthbearer.sasl.jaas.config": f'{OAUTH_MODULE} required clientId="b" clientSecret="s";',
    "sasl.oauthbearer.token.endpoint.url": "https://issuer/token",
}
PREFIX = "listener.name.tokens.oauthbearer."
HANDLER = f"{PREFIX}sasl.server.callback.handler.class"


def listener_of(settings: dict[str, str]) -> SaslListener:
    config = BrokerConfig.from_properties(BASE | settings)
    assert config.warnings == ()
    sasl = secured_listeners(config, KnownCredentials(), SYSTEM_CLOCK)["TOKENS"].sasl
    assert sasl is not None
    return sasl


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {HANDLER: VALIDATORS[0]},
        {"sasl.oauthbearer.jwks.endpoint.url": ""},
        {"sasl.oauthbearer.jwks.endpoint.url": "http://issuer/jwks"},
        {"sasl.oauthbearer.jwks.endpoint.url": "file:///no/such/file"},
        {HANDLER: "com.example.Validator"},
        {"sasl.server.callback.handler.class": UNSECURED_VALIDATOR},
        {"listener.name.tokens.plain.sasl.server.callback.handler.class": VALIDATORS[0]},
        {f"{PREFIX}sasl.login.callback.handler.class": "com.example.Login"},
        {f"{PREFIX}sasl.login.class": "com.example.Login"},
    ],
)
def test_cve_2026_33557_and_2026_110985_a_broker_without_keys_does_not_start(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        check_listeners(BrokerConfig.from_properties(BASE | settings))


def test_settings_of_listener_and_mechanism_come_first(tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps(ISSUER.key_set))
    settings = {
        "sasl.oauthbearer.jwks.endpoint.url": "https://other/jwks",
        f"{PREFIX}sasl.oauthbearer.jwks.endpoint.url": f"file://{file}",
        "sasl.oauthbearer.expected.audience": "nobody",
        "listener.name.tokens.sasl.oauthbearer.expected.audience": "logs,kafka",
        "sasl.oauthbearer.sub.claim.name": "email",
        HANDLER: VALIDATORS[1],
        f"{PREFIX}sasl.login.callback.handler.class": LOGINS[1],
    }
    check_listeners(BrokerConfig.from_properties(BASE | settings))
    server = listener_of(settings).mechanisms["OAUTHBEARER"]()
    step = server.evaluate(client_initial(ISSUER.token({"aud": "kafka", "email": "a@b"}), {}))
    assert step.principal == KafkaPrincipal("User", "a@b")


def test_unsecured_tokens_only_by_the_name_of_kafka_s_handler() -> None:
    token = client_initial(unsigned({"sub": "bob", "exp": time.time() + 60}), {})
    step = listener_of({HANDLER: UNSECURED_VALIDATOR}).mechanisms["OAUTHBEARER"]().evaluate(token)
    assert step.principal == KafkaPrincipal("User", "bob")
    secured = listener_of({"sasl.oauthbearer.jwks.endpoint.url": "https://issuer/jwks"})
    assert secured.mechanisms["OAUTHBEARER"]().evaluate(token).principal is None


# ---- the gate: a token is with a handler thread


class Frame:
    """A request that remembers what became of it."""

    def __init__(self) -> None:
        self.frame = memoryview(b"\0\x24" + bytes(8))
        self.closed = ""

    def close_connection(self, reason: str) -> None:
        self.closed = reason


def test_no_frame_overtakes_a_token() -> None:
    """Two threads would judge one session."""
    gate, session = SaslGate(ExpirationReaper(), 0), session_of(Keys())
    first, second = Frame(), Frame()
    assert gate.begin(first, session, may_block=False) is False  # type: ignore[arg-type]
    assert gate.begin(second, session, may_block=False) is True  # type: ignore[arg-type]
    assert (first.closed, second.closed) == ("", "a frame comes before the answer to the token")
    assert session.state is SaslState.TOKEN, "nobody is authenticated by it"
