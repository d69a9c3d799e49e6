"""SCRAM: the client's exchange against the example of RFC 7677, against a server that lies, and against ours."""

import hmac
from base64 import b64decode
from dataclasses import replace

import pytest
from scramp import ScramClient as OtherClient

from odradek.broker.security.authentication.mechanisms import AuthenticationFailed, ScramServer, ScramSettings
from odradek.broker.security.core.scram_credentials import (
    MECHANISMS,
    ScramCredential,
    credential_of_password,
    credential_text,
)
from odradek.broker.security.credential_store import KnownCredentials
from odradek.security.scram import ScramClient, ScramError, parse_client_final, parse_client_first, signature

CREDENTIAL = credential_of_password(MECHANISMS["SCRAM-SHA-256"], "pencil", b"0123456789abcdef", 4096)


def known(credential: ScramCredential, mechanism: str = "SCRAM-SHA-256") -> KnownCredentials:
    """The credential of alice."""
    credentials = KnownCredentials()
    credentials.set_users({"alice": {mechanism: credential_text(credential)}})
    return credentials


def server(credential: ScramCredential = CREDENTIAL) -> ScramServer:
    return ScramServer(ScramSettings("SCRAM-SHA-256", known(credential), b"secret of the broker"))


def client(user: str = "alice", password: str = "pencil", nonce: str = "abcdef") -> ScramClient:
    return ScramClient("SCRAM-SHA-256", user, password, nonce)


def test_the_example_of_the_standard() -> None:
    example = ScramClient("SCRAM-SHA-256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert example.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    final = example.final(b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    assert final.endswith(b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    example.verify(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@pytest.mark.parametrize("hash_name", ["sha256", "sha512"])
def test_signatures_are_those_of_the_standard_library(hash_name: str) -> None:
    for key in (b"", b"k", bytes(range(64))):
        assert signature(hash_name, key, b"message") == hmac.digest(key, b"message", hash_name)


@pytest.mark.parametrize("proof", ["A", "AB", "ABC", "ABCDE", "AB=C", "=AB=", "A===", "AAAA=", "AA==AA=="])
def test_a_proof_that_is_not_whole_base64(proof: str) -> None:
    with pytest.raises(ScramError):
        parse_client_final(f"c=biws,r=abcdef,p={proof}".encode())


def test_login() -> None:
    ours, theirs = server(), client()
    challenge = ours.evaluate(theirs.first()).challenge
    done = ours.evaluate(theirs.final(challenge))
    theirs.verify(done.challenge)
    assert str(done.principal) == "User:alice"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_client_of_others(mechanism: str) -> None:
    credential = credential_of_password(MECHANISMS[mechanism], "pencil", b"0123456789abcdef", 4096)
    ours = ScramServer(ScramSettings(mechanism, known(credential, mechanism), b"secret"))
    theirs = OtherClient([mechanism], "alice", "pencil")
    theirs.set_server_first(ours.evaluate(theirs.get_client_first().encode()).challenge.decode())
    theirs.set_server_final(ours.evaluate(theirs.get_client_final().encode()).challenge.decode())


def test_unknown_user_and_wrong_password_are_answered_alike() -> None:
    told = []
    for user, password in (("nobody", "pencil"), ("alice", "wrong")):
        ours, theirs = server(), client(user, password)
        challenge = ours.evaluate(theirs.first()).challenge
        with pytest.raises(AuthenticationFailed) as failure:
            ours.evaluate(theirs.final(challenge))
        told.append((str(failure.value), failure.value.detail, challenge.count(b","), challenge[-4:]))
    assert told[0] == told[1]


def test_the_salt_of_an_unknown_user_stays_the_same() -> None:
    salts = {server().evaluate(client("nobody").first()).challenge.split(b",")[1] for _ in range(3)}
    assert len(salts) == 1


@pytest.mark.parametrize(
    ("salt", "iterations"),
    [(b"16 random bytes.", 4096), (bytes(range(24)), 8192), (b"1c9b5v7m2k4x8z0q3w6e1r5t7y", 4096)],
    ids=["16 bytes", "24 bytes", "Java's tools"],
)
def test_an_unknown_user_has_a_credential_like_those_that_there_are(salt: bytes, iterations: int) -> None:
    """Otherwise one message tells which users there are, without any password."""
    credential = credential_of_password(MECHANISMS["SCRAM-SHA-256"], "pencil", salt, iterations)
    found = set()
    for number in range(200):
        told = server(credential).evaluate(client(f"nobody-{number}").first()).challenge.decode()
        values = dict(value.split("=", 1) for value in told.split(","))
        assert int(values["i"]) == iterations
        found.add(b64decode(values["s"]))
    assert len(found) == 200
    if not salt.isalnum():
        assert {len(each) for each in found} == {len(salt)}
        return
    assert all(int(each, 36) < 1 << 130 and each == each.lower() for each in found)
    assert sum(len(each) == 26 for each in found) > 40
    assert sum(len(each) == 25 for each in found) > 40


def test_cve_2024_56128_a_replayed_exchange_fails() -> None:
    recorded = client()
    ours = server()
    first = recorded.first()
    final = recorded.final(ours.evaluate(first).challenge)
    ours.evaluate(final)
    again = server()
    again.evaluate(first)
    with pytest.raises(AuthenticationFailed) as failure:
        again.evaluate(final)
    assert "nonce" in failure.value.detail


def test_an_exchange_ends_once() -> None:
    ours, theirs = server(), client()
    final = theirs.final(ours.evaluate(theirs.first()).challenge)
    ours.evaluate(final)
    with pytest.raises(AuthenticationFailed):
        ours.evaluate(final)


def test_another_channel_binding_than_at_first() -> None:
    ours, theirs = server(), client()
    final = theirs.final(ours.evaluate(theirs.first()).challenge)
    with pytest.raises(AuthenticationFailed) as failure:
        ours.evaluate(final.replace(b"c=biws", b"c=eSws"))
    assert "channel binding" in failure.value.detail  # the proof is of the other binding, so it is wrong as well


@pytest.mark.parametrize("iterations", [0, 1, 4095, 1_000_001, 999_999_999])
def test_cve_2026_10143_a_client_bounds_the_iterations(iterations: int) -> None:
    with pytest.raises(ScramError, match="iterations"):
        client().final(f"r=abcdefX,s=c2FsdA==,i={iterations}".encode())


def test_a_stored_credential_with_few_iterations_is_not_used() -> None:
    ours, theirs = server(replace(CREDENTIAL, iterations=1)), client()
    assert b",i=4096" in ours.evaluate(theirs.first()).challenge


@pytest.mark.parametrize(
    "message",
    [
        b"r=other,s=c2FsdA==,i=4096",
        b"r=abcdef,s=c2FsdA==,i=4096",
        b"r=abcdefX,s=c2FsdA==",
        b"r=abcdefX,s=!,i=4096",
        b"",
        b"\xff\xfe",
        b"x" * 100_000,
    ],
)
def test_a_server_that_lies(message: bytes) -> None:
    with pytest.raises(ScramError):
        client().final(message)


@pytest.mark.parametrize("message", [b"v=AAAA", b"e=other-error", b"", b"v=", b"v=!"])
def test_a_server_that_does_not_know_the_password(message: bytes) -> None:
    theirs = client()
    theirs.final(server().evaluate(theirs.first()).challenge)
    with pytest.raises(ScramError):
        theirs.verify(message)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n",
        b"n,,",
        b"y,,n=a,r=b",
        b"p=tls-unique,,n=a,r=b",
        b"n,,n=a",
        b"n,,n=a=,r=b",
        b"n,,n=a\0,r=b",
        b"n,,r=b,n=a",
    ],
)
def test_first_messages_that_scram_does_not_allow(message: bytes) -> None:
    with pytest.raises(ScramError):
        parse_client_first(message)


@pytest.mark.parametrize(
    "message", [b"", b"c=biws", b"c=biws,r=a", b"c=biws,r=a,p=!", b"c=bi,r=a,p=AAAA", b"r=a,c=biws,p=AAAA"]
)
def test_final_messages_that_scram_does_not_allow(message: bytes) -> None:
    with pytest.raises(ScramError):
        parse_client_final(message)


def test_names_are_escaped() -> None:
    first = parse_client_first(ScramClient("SCRAM-SHA-256", "a=b,c", "x", "nonce").first())
    assert first.user == "a=b,c"
    assert parse_client_first(b"n,,n=id,r=x,tokenauth=true").extensions == {"tokenauth": "true"}
