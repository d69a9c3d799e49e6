"""SCRAM (RFC 5802) as Kafka uses it: its four messages, and the client's side of the exchange. No socket, no clock.

client-first   n,,n=USER,r=NONCE[,tokenauth=true]
server-first   r=NONCE+MORE,s=SALT,i=ITERATIONS
client-final   c=biws,r=NONCE+MORE,p=PROOF
server-final   v=SIGNATURE   or   e=ERROR
"""

import hashlib
import hmac
import re
from base64 import b64encode
from binascii import Error as BinasciiError
from binascii import a2b_base64
from collections.abc import Callable
from typing import NamedTuple

HASH_OF_MECHANISM = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS_MIN = 4096
CLIENT_ITERATIONS_MAX = 1_000_000
"""A server that asks for more is refused: a client must not work for as long as a stranger says."""
TOKEN_EXTENSION = "tokenauth"
_MESSAGE_BYTES_MAX = 64 << 10
_INNER, _OUTER = (bytes(pad ^ byte for byte in range(256)) for pad in (0x36, 0x5C))
# Possessive: a character belongs to one alternative only, so nothing is kept to go back to. A name of 64 KB costs 18 ms
# otherwise, on a network thread.
_NAME = r"(?:[^\x00=,]++|=2C|=3D)*+"
_PRINTABLE = r"[\x21-\x2B\x2D-\x7E]+"
_BASE64 = r"[a-zA-Z0-9/+]*+={0,2}"  # whether it is whole, its decoder finds out faster
_CLIENT_FIRST = re.compile(
    rf"(n,(?:a=({_NAME}))?,)((?:m={_NAME},)?n=({_NAME}),r=({_PRINTABLE})((?:,[A-Za-z]+=[^\x00,]+)*))"
)
_CLIENT_FINAL = re.compile(rf"(c=({_BASE64}),r=({_PRINTABLE})(?:,[A-Za-z]+=[^\x00,]+)*),p=({_BASE64})")
_SERVER_FIRST = re.compile(rf"r=({_PRINTABLE}),s=({_BASE64}),i=([0-9]{{1,9}})(?:,[A-Za-z]+=[^\x00,]+)*")
_SERVER_FINAL = re.compile(rf"(?:e=([^\x00,]+)|v=({_BASE64}))(?:,[A-Za-z]+=[^\x00,]+)*")


class ScramError(Exception):
    """A message that SCRAM doesn't allow, or a proof that is wrong. The text is for the log of this side."""


class ClientFirst(NamedTuple):
    gs2_header: str
    bare: str
    user: str
    authorization_id: str
    nonce: str
    extensions: dict[str, str]


class ClientFinal(NamedTuple):
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
    return ClientFinal(found[1], _decoded(found[2]), found[3], _decoded(found[4]))


def server_first(nonce: str, salt: bytes, iterations: int) -> str:
    return f"r={nonce},s={b64encode(salt).decode()},i={iterations}"


def signature(hash_name: str, key: bytes, message: bytes) -> bytes:
    """HMAC (RFC 2104) with a key that is not longer than a block, as all keys of SCRAM are.

    OpenSSL's own, `hmac.digest`, looks for the algorithm at each call and takes three times as long.
    """
    block = key.ljust(128 if hash_name == "sha512" else 64, b"\0")
    return digest_of(hash_name, block.translate(_OUTER) + digest_of(hash_name, block.translate(_INNER) + message))


def digest_of(hash_name: str, data: bytes) -> bytes:
    return (hashlib.sha512(data) if hash_name == "sha512" else hashlib.sha256(data)).digest()


def exclusive_or(first: bytes, second: bytes) -> bytes:
    """Both have the same length. As two numbers: a loop over the bytes costs ten times as much."""
    return (int.from_bytes(first, "big") ^ int.from_bytes(second, "big")).to_bytes(len(first), "big")


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
        nonce, salt, iterations = found[1], _decoded(found[2]), int(found[3])
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise ScramError("the server's nonce does not begin with the client's")
        if not ITERATIONS_MIN <= iterations <= CLIENT_ITERATIONS_MAX:
            raise ScramError(
                f"the server asks for {iterations} iterations, allowed are {ITERATIONS_MIN} to {CLIENT_ITERATIONS_MAX}"
            )
        salted = self._salted_password(self._hash, salt, iterations)
        client_key = signature(self._hash, salted, b"Client Key")
        stored_key = digest_of(self._hash, client_key)
        without_proof = f"c=biws,r={nonce}"
        auth_message = f"{self._first_bare},{text},{without_proof}".encode()
        proof = exclusive_or(client_key, signature(self._hash, stored_key, auth_message))
        server_key = signature(self._hash, salted, b"Server Key")
        self._server_signature = signature(self._hash, server_key, auth_message)
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def _salt(self, hash_name: str, salt: bytes, iterations: int) -> bytes:
        return salted_password(hash_name, self._password, salt, iterations)

    def verify(self, server_final_message: bytes) -> None:
        """Raise ScramError unless the server has proved that it knows the password."""
        found = _SERVER_FINAL.fullmatch(_text(server_final_message))
        if found is None:
            raise ScramError("invalid server-final message")
        if found[1] is not None:
            raise ScramError(f"the server refuses: {found[1]}")
        if not self._server_signature or not hmac.compare_digest(_decoded(found[2]), self._server_signature):
            raise ScramError("the server's signature is wrong")


def _decoded(base64: str) -> bytes:
    try:
        decoded = a2b_base64(base64, strict_mode=True)
    except BinasciiError:
        raise ScramError("a value is not in base64") from None
    if len(base64) % 4:  # a padding too many, which the decoder takes
        raise ScramError("a value is not in base64")
    return decoded


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
