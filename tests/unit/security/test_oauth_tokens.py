"""Tokens of a client: where they come from, when they are refreshed, and the message that shows them."""

import time
from pathlib import Path

import pytest

from odradek.base.config.login_classes import LOGINS, UNSECURED_LOGIN
from odradek.base.errors import ConfigError
from odradek.client.client_security import AuthenticationRefused, ClientSecurity
from odradek.security.https import BODY_BYTES_MAX, Provider, RequestFailed, provider_url
from odradek.security.jaas import OAUTH_MODULE
from odradek.security.jwt import TokenRules, unsecured
from odradek.security.oauth_messages import (
    OAuthMessageError,
    client_initial,
    parse_client_initial,
    refusal,
)
from odradek.security.oauth_tokens import RefreshRules, TokenUnavailable, token_source
from token_issuer import CLIENT_ID, CLIENT_SECRET, Issuer, serving

ENDPOINT, HANDLER = "sasl.oauthbearer.token.endpoint.url", "sasl.login.callback.handler.class"
CREDENTIALS = {"clientId": CLIENT_ID, "clientSecret": CLIENT_SECRET}
ISSUER = Issuer()


def test_the_first_message() -> None:
    sent = client_initial("a.b-c_", {"traceId": "5", "pool": "x y"})
    assert sent == b"n,,\x01auth=Bearer a.b-c_\x01traceId=5\x01pool=x y\x01\x01"
    read = parse_client_initial(sent)
    assert (read.token, read.authorization_id, read.extensions) == ("a.b-c_", "", {"traceId": "5", "pool": "x y"})
    assert parse_client_initial(b"n,a=al=2Cice,\x01auth=bEARER  t==\x01\x01").authorization_id == "al,ice"
    assert "a.b-c_" not in repr(read)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Basic t\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer t\x01",
        b"y,,\x01auth=Bearer t\x01\x01",
        b"n,,\x01auth=Bearer t\x01auth=Bearer u\x01\x01",
        b"n,,\x01auth=Bearer t\x01a1=x\x01\x01",
        b"n,,\x01auth=Bearer t\x01a=\x01\x01",
        b"n,,\x01auth=Bearer t\x01a=\xc3\xa9\x01\x01",
        b"n,,\x01auth=Bearer t\x01\x01rest",
        b"n,a=,\x01auth=Bearer t\x01\x01",
        b"n,,\x01auth=Bearer \xff\x01\x01",
    ],
)
def test_a_malformed_first_message(data: bytes) -> None:
    with pytest.raises(OAuthMessageError):
        parse_client_initial(data)


def test_the_text_of_a_refusal() -> None:
    assert refusal("invalid_token") == '{"status":"invalid_token"}'
    assert refusal("insufficient_scope", "a b") == '{"status":"insufficient_scope", "scope":"a b"}'


def test_refresh_times() -> None:
    rules = RefreshRules(0.8, 0.05, 60, 300)
    assert rules.due_ms(0, 3_600_000, 0) == 2_880_000
    assert rules.due_ms(0, 3_600_000, 1) == 3_060_000
    assert rules.due_ms(0, 1_000_000, 0) == 700_000, "the buffer is left"
    assert rules.due_ms(0, 400_000, 0) == 100_000
    assert RefreshRules(0.1, 0, 900, 300).due_ms(0, 3_600_000, 0) == 900_000, "not before the minimum"
    assert rules.due_ms(0, 100_000, 0) == 80_000, "a short life: neither counts"


def test_a_token_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(ISSUER.token() + "\n")
    source = token_source({ENDPOINT: f"file://{file}", HANDLER: LOGINS[0]}, {"extension_pool": "five"})
    first = source.token()
    assert source.extensions == {"pool": "five"}
    file.unlink()
    assert source.token() == first, "kept until it is due"
    with pytest.raises(TokenUnavailable, match="can't be read"):
        token_source({ENDPOINT: f"file://{file}"}, {}).token()
    for text in ("not a token", "é", ""):
        file.write_text(text)
        with pytest.raises(TokenUnavailable) as error:
            token_source({ENDPOINT: f"file://{file}"}, {}).token()
        assert "not a token" not in str(error.value)


def test_a_token_endpoint() -> None:
    with serving(ISSUER) as endpoints:
        endpoints.failures = 2
        settings = {ENDPOINT: f"{endpoints.url}/token", "sasl.login.retry.backoff.ms": "1"}
        source = token_source(settings, {**CREDENTIALS, "scope": "a b"})
        assert source.token() == source.token()
        assert endpoints.asked == [("/token", "grant_type=client_credentials&scope=a+b")] * 3
        endpoints.claims = {"exp": 1}
        short = token_source(settings, CREDENTIALS)
        assert short.token() != short.token(), "expired: another one is asked for"
        wrong = token_source(settings, {**CREDENTIALS, "clientSecret": "other"})
        with pytest.raises(TokenUnavailable, match="status 401"):
            wrong.token()
        endpoints.failures = 100
        with pytest.raises(TokenUnavailable, match="status 503"):
            token_source({**settings, "sasl.login.retry.backoff.max.ms": "5"}, CREDENTIALS).token()


def test_an_unsecured_token_is_made_only_where_its_options_are() -> None:
    options = {"unsecuredLoginStringClaim_sub": "bob", "unsecuredLoginExtension_pool": "p"}
    for settings in ({}, {HANDLER: UNSECURED_LOGIN}):
        source = token_source(settings, options)
        assert source.extensions == {"pool": "p"}
        assert unsecured(source.token(), TokenRules(), int(time.time() * 1000)).principal == "bob"
    for wrong in ({}, {"unsecuredLoginStringClaim_exp": "5", "unsecuredLoginStringClaim_sub": "b"}):
        with pytest.raises(ConfigError):
            token_source({HANDLER: UNSECURED_LOGIN}, wrong)


@pytest.mark.parametrize(
    ("settings", "options", "why"),
    [
        ({}, {}, "needs sasl.oauthbearer.token.endpoint.url"),
        ({ENDPOINT: "https://issuer/token"}, {}, "clientId and clientSecret"),
        ({ENDPOINT: "http://issuer/token"}, CREDENTIALS, "https://HOST"),
        ({ENDPOINT: "ftp://localhost/token"}, CREDENTIALS, "https://HOST"),
        ({ENDPOINT: "https://user:secret@issuer/token"}, CREDENTIALS, "without user"),
        ({ENDPOINT: "https://[/token"}, CREDENTIALS, "not a URL"),
        ({HANDLER: "com.example.Handler"}, CREDENTIALS, "com.example.Handler"),
        ({ENDPOINT: "file:///t"}, {"extension_a1": "x"}, "extension a1"),
        ({ENDPOINT: "file:///t", "sasl.login.refresh.window.factor": "x"}, {}, "not a number"),
    ],
)
def test_settings_that_can_not_be_used(settings: dict[str, str], options: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why) as error:
        token_source(settings, options)
    assert CLIENT_SECRET not in str(error.value)


def test_a_provider_s_answer_is_bounded() -> None:
    with serving(ISSUER) as endpoints:
        provider = Provider(provider_url("key", f"{endpoints.url}/jwks"))
        assert b'"keys"' in provider.get()
        endpoints.issuer = type("Large", (), {"key_set": {"keys": ["x" * BODY_BYTES_MAX]}})()
        with pytest.raises(RequestFailed, match="larger than"):
            provider.get()
    with pytest.raises(RequestFailed, match="ConnectionRefusedError"):
        provider.get()


def test_a_client_that_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(ISSUER.token())
    security = ClientSecurity(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            ENDPOINT: f"file://{file}",
            "sasl.jaas.config": f"{OAUTH_MODULE} required;",
        }
    )
    sent: list[bytes] = []

    def exchange(token: bytes) -> bytes:
        sent.append(token)
        return b'{"status":"invalid_token"}' if len(sent) == 1 else b""

    with pytest.raises(AuthenticationRefused, match="refused the token"):
        security.authenticate(exchange, "localhost")
    assert sent[1] == b"\x01"
