"""DIGEST-MD5 (RFC 2831) as ZooKeeper uses it: the client's side of the exchange. No socket, no clock.

    server   realm="zk-sasl-md5",nonce="…",charset=utf-8,algorithm=md5-sess
    client   username="…",realm="…",nonce="…",cnonce="…",nc=00000001,qop=auth,digest-uri="…",response=…
    server   rspauth=…

The hash is weak by now and the password's digest is all that protects it: over TLS, or on a network of brokers alone.
"""

import hashlib
import hmac
import re

SERVICE = "zookeeper/zk-sasl-md5"
"""The name of every ZooKeeper server, whatever its host is."""
_CHALLENGE_BYTES_MAX = 2048
_DIRECTIVE = re.compile(r'\s*([a-zA-Z-]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^\s",]+))\s*(?:,|$)')
_ONCE = ("nonce", "algorithm", "charset", "rspauth")
_COUNT = "00000001"


class DigestError(Exception):
    """A message that DIGEST-MD5 doesn't allow, or a server that doesn't know the password. Holds no secret."""


class DigestClient:
    """One exchange. `cnonce` must be new and random."""

    def __init__(self, user: str, password: str, cnonce: str) -> None:
        self._user = user
        self._password = password
        self._cnonce = cnonce
        self._expected = ""

    def respond(self, challenge: bytes) -> bytes:
        directives = _directives(challenge)
        nonce = directives.get("nonce")
        if not nonce or directives.get("algorithm") != "md5-sess":
            raise DigestError("the challenge has no nonce, or another algorithm than md5-sess")
        if "auth" not in re.split(r"\s*,\s*", directives.get("qop", "auth")):
            raise DigestError("the server wants more than authentication")
        realm = directives.get("realm", "")
        charset = "utf-8" if directives.get("charset") == "utf-8" else "latin-1"
        self._expected = self._response(realm, nonce, "", charset)
        parts = {
            "username": _quoted(self._user),
            "realm": _quoted(realm),
            "nonce": _quoted(nonce),
            "cnonce": _quoted(self._cnonce),
            "nc": _COUNT,
            "qop": "auth",
            "digest-uri": _quoted(SERVICE),
            "response": self._response(realm, nonce, "AUTHENTICATE", charset),
            **({"charset": charset} if charset == "utf-8" else {}),
        }
        return ",".join(f"{name}={value}" for name, value in parts.items()).encode(charset)

    def verify(self, answer: bytes) -> None:
        """DigestError unless the server has shown that it knows the password too."""
        found = _directives(answer).get("rspauth", "")
        if not self._expected or not hmac.compare_digest(found.encode(), self._expected.encode()):
            raise DigestError("the server's answer is wrong")

    def _response(self, realm: str, nonce: str, method: str, charset: str) -> str:
        secret = b":".join(_encoded(text, charset) for text in (self._user, realm, self._password))
        session = b":".join((_hash(secret), nonce.encode(charset), self._cnonce.encode()))
        texts = (_hash(session).hex(), nonce, _COUNT, self._cnonce, "auth", _hash(f"{method}:{SERVICE}".encode()).hex())
        return _hash(":".join(texts).encode(charset)).hex()


def _directives(data: bytes) -> dict[str, str]:
    if len(data) > _CHALLENGE_BYTES_MAX:
        raise DigestError("message too long")
    try:
        text = bytes(data).decode()
    except UnicodeDecodeError:
        raise DigestError("message is not UTF-8") from None
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        directive = _DIRECTIVE.match(text, at)
        if directive is None:
            raise DigestError("invalid message")
        name = directive[1].lower()
        value = directive[3] if directive[2] is None else re.sub(r"\\(.)", r"\1", directive[2])
        if name in found and name in _ONCE:
            raise DigestError(f"{name} comes twice")
        found.setdefault(name, value)
        at = directive.end()
    return found


def _encoded(text: str, charset: str) -> bytes:
    """Encode a text: Latin-1 if possible, for any charset of the message."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        if charset == "utf-8":
            return text.encode()
        raise DigestError("the server takes names and passwords of Latin-1 only") from None


def _quoted(text: str) -> str:
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def _hash(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()
