"""DIGEST-MD5 to ZooKeeper: the response, the server's proof, and messages that it doesn't allow."""

import pytest

from odradek.security.digest_md5 import DigestClient, DigestError

CHALLENGE = b'realm="zk-sasl-md5",nonce="OA6MG9tEQGm2hh",charset=utf-8,algorithm=md5-sess'


def exchanged(user: str = "kafka", password: str = "secret", challenge: bytes = CHALLENGE) -> tuple[DigestClient, str]:
    client = DigestClient(user, password, "OA6MHXh6VqTrRk")
    return client, client.respond(challenge).decode()


def test_the_response_of_the_standard(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of RFC 2831, section 4."""
    monkeypatch.setattr("odradek.security.digest_md5.SERVICE", "imap/elwood.innosoft.com")
    challenge = b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8'
    client, response = exchanged("chris", "secret", challenge)
    assert "response=d388dad90d4bbd760a152321f2143af7" in response
    assert 'username="chris",realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",cnonce="OA6MHXh6VqTrRk"' in response
    client.verify(b"rspauth=ea40f60335c427b5527b84dbabcdfffd")


def test_a_server_that_does_not_know_the_password() -> None:
    client, _ = exchanged()
    for answer in (b"", b"rspauth=", b"rspauth=ea40f60335c427b5527b84dbabcdfffd", CHALLENGE):
        with pytest.raises(DigestError):
            client.verify(answer)
    with pytest.raises(DigestError):
        DigestClient("kafka", "secret", "c").verify(b"rspauth=")


def test_names_are_quoted_and_passwords_stay_out() -> None:
    _, response = exchanged('a"b\\c', "s3cret")
    assert response.startswith('username="a\\"b\\\\c"')
    assert "s3cret" not in response


def test_texts_beyond_latin_1_need_utf_8() -> None:
    exchanged("k\N{GREEK SMALL LETTER ALPHA}")
    with pytest.raises(DigestError):
        exchanged("k\N{GREEK SMALL LETTER ALPHA}", challenge=b'nonce="x",algorithm=md5-sess')


@pytest.mark.parametrize(
    "challenge",
    [
        b"",
        b"nonsense",
        b'realm="x",algorithm=md5-sess',
        b'nonce="x"',
        b'nonce="x",algorithm=md5',
        b'nonce="x",nonce="y",algorithm=md5-sess',
        b'nonce="x",algorithm=md5-sess,qop="auth-int"',
        b'nonce="x,algorithm=md5-sess',
        b"\xff",
        b'nonce="x",algorithm=md5-sess,' + b"a" * 3000,
    ],
)
def test_challenges_that_are_refused(challenge: bytes) -> None:
    with pytest.raises(DigestError):
        exchanged(challenge=challenge)
