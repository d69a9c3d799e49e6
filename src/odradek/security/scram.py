"""SCRAM (RFC 5802) as Kafka uses it: its four messages, and the client's side of the exchange. No socket, no clock.

client-first   n,,n=USER,r=NONCE[,tokenauth=true]
server-first   r=NONCE+MORE,s=SALT,i=ITERATIONS
client-final   c=biws,r=NONCE+MORE,p=PROOF
server-final   v=SIGNATURE   or   e=ERROR
"""

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Callable

from odradek.base.value_classes import dataclass

HASH_OF_MECHANISM = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS_MIN = 4096
CLIENT_ITERATIONS_MAX = 1_000_000
"""A server that asks for more is refused: a client must not work for as long as a stranger says."""
TOKEN_EXTENSION = "tokenauth"
_MESSAGE_BYTES_MAX = 64 << 10
# Possessive: a character belongs to one alternative only, so nothing is kept to go back to. A name of 64 KB costs 18 ms
# otherwise, on a network thread.
_NAME = r"(?:[^\x00=,]++|=2C|=3D)*+"
_PRINTABLE = r"[\x21-\x2B\x2D-\x7E]+"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_CLIENT_FIRST = re.compile(
    rf"(n,(?:a=({_NAME}))?,)((?:m={_NAME},)?n=({_NAME}),r=({_PRINTABLE})((?:,[A-Za-z]+=[^\x00,]+)*))"
)
_CLIENT_FINAL = re.compile(rf"(c=({_BASE64}),r=({_PRINTABLE})(?:,[A-Za-z]+=[^\x00,]+)*),p=({_BASE64})")
_SERVER_FIRST = re.compile(rf"r=({_PRINTABLE}),s=({_BASE64}),i=([0-9]{{1,9}})(?:,[A-Za-z]+=[^\x00,]+)*")
_SERVER_FINAL = re.compile(rf"(?:e=([^\x00,]+)|v=({_BASE64}))(?:,[A-Za-z]+=[^\x00,]+)*")


class ScramError(Exception):
    """A message that SCRAM doesn't allow, or a proof that is wrong. The text is for the log of this side."""


@dataclass(frozen=True, slots=True)
class ClientFirst:
    gs2_header: str
    bare: str
    user: str
    authorization_id: str
    nonce: str
    extensions: dict[str, str]


@dataclass(frozen=True, slots=True)
class ClientFinal:
    without_proof: str
    channel_binding: bytes
    nonce: str
    proof: bytes


def parse_client_first(data: bytes) -> ClientFirst:
    found = _CLIENT_FIRST.fullmatch(_text(data))
    if found is None:
        raise ScramError("invalid client-first message")
    extensions = dict(pair.split("=", 1) for pair in found[6].split(",") if pair)
    return ClientFirst(found[1], found[3], _unescaped(found[4]), _unescaped(found[2] or ""), found[5], extensions)


def parse_client_final(data: bytes) -> ClientFinal:
    found = _CLIENT_FINAL.fullmatch(_text(data))
    if found is None:
        raise ScramError("invalid client-final message")
    return ClientFinal(found[1], b64decode(found[2]), found[3], b64decode(found[4]))


def server_first(nonce: str, salt: bytes, iterations: int) -> str:
    return f"r={nonce},s={b64encode(salt).decode()},i={iterations}"


def signature(hash_name: str, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, hash_name)


def exclusive_or(first: bytes, second: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(first, second, strict=True))


def salted_password(hash_name: str, password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations)


class ScramClient:
    """One exchange of a client. `nonce` must be new and random."""

    def __init__(
        self,
        mechanism: str,
        user: str,
        password: str,
        nonce: str,
        *,
        token: bool = False,
        salted_password: Callable[[str, bytes, int], bytes] | None = None,
    ) -> None:
        """`salted_password`: from hash, salt and iterations, for a caller who keeps the result."""
        self._hash = HASH_OF_MECHANISM[mechanism]
        self._password = password
        self._salted_password = salted_password or self._salt
        self._nonce = nonce
        extension = f",{TOKEN_EXTENSION}=true" if token else ""
        self._first_bare = f"n={_escaped(user)},r={nonce}{extension}"
        self._server_signature = b""

    def first(self) -> bytes:
        return f"n,,{self._first_bare}".encode()

    def final(self, server_first_message: bytes) -> bytes:
        """The proof. Takes the time of PBKDF2: not for a network thread."""
        text = _text(server_first_message)
        found = _SERVER_FIRST.fullmatch(text)
        if found is None:
            raise ScramError("invalid server-first message")
        nonce, salt, iterations = found[1], b64decode(found[2]), int(found[3])
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise ScramError("the server's nonce does not begin with the client's")
        if not ITERATIONS_MIN <= iterations <= CLIENT_ITERATIONS_MAX:
            raise ScramError(
                f"the server asks for {iterations} iterations, allowed are {ITERATIONS_MIN} to {CLIENT_ITERATIONS_MAX}"
            )
        salted = self._salted_password(self._hash, salt, iterations)
        client_key = signature(self._hash, salted, b"Client Key")
        stored_key = hashlib.new(self._hash, client_key).digest()
        without_proof = f"c=biws,r={nonce}"
        auth_message = f"{self._first_bare},{text},{without_proof}".encode()
        proof = exclusive_or(client_key, signature(self._hash, stored_key, auth_message))
        server_key = signature(self._hash, salted, b"Server Key")
        self._server_signature = signature(self._hash, server_key, auth_message)
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def _salt(self, hash_name: str, salt: bytes, iterations: int) -> bytes:
        return salted_password(hash_name, self._password, salt, iterations)

    def verify(self, server_final_message: bytes) -> None:
        """ScramError unless the server has shown that it knows the password too."""
        found = _SERVER_FINAL.fullmatch(_text(server_final_message))
        if found is None:
            raise ScramError("invalid server-final message")
        if found[1] is not None:
            raise ScramError(f"the server refuses: {found[1]}")
        if not self._server_signature or not hmac.compare_digest(b64decode(found[2]), self._server_signature):
            raise ScramError("the server's signature is wrong")


def _text(data: bytes) -> str:
    if len(data) > _MESSAGE_BYTES_MAX:
        raise ScramError("message too long")
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        raise ScramError("message is not UTF-8") from None


def _escaped(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")
