"""SASL mechanisms of the broker's side: PLAIN and SCRAM. One object per exchange.

A user that doesn't exist and a wrong password get the same answers after the same work.
"""

import hashlib
import hmac
import secrets
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import NamedTuple, Protocol

from odradek.base.value_classes import dataclass
from odradek.broker.security.core.scram_credentials import ScramCredential
from odradek.broker.security.credential_store import JAVA_SALT_BITS, SALT_DIGITS, CredentialShape, CredentialStore
from odradek.broker.security.principal import USER_TYPE, KafkaPrincipal
from odradek.security.scram import (
    HASH_OF_MECHANISM,
    ITERATIONS_MIN,
    TOKEN_EXTENSION,
    ClientFirst,
    ScramError,
    digest_of,
    exclusive_or,
    parse_client_final,
    parse_client_first,
    server_first,
    signature,
)

_PLAIN_TOKEN_BYTES_MAX = 64 << 10
_DEFAULT_SHAPE = CredentialShape(24, ITERATIONS_MIN)
_HASH_BYTES = {name: hashlib.new(name).digest_size for name in HASH_OF_MECHANISM.values()}


class AuthenticationFailed(Exception):
    """The message goes to the client and reveals nothing; `detail` goes to the log, and `user` to the audit log: only a
    known name, because an unknown one may be a password in the wrong field."""

    def __init__(self, message: str, detail: str = "", user: str = "") -> None:
        super().__init__(message)
        self.detail = detail or message
        self.user = user


class Step(NamedTuple):
    """Answer to one token of a client."""

    challenge: bytes
    principal: KafkaPrincipal | None = None
    """Set when the client is authenticated."""
    expires_ms: int | None = None
    """Unix time at which the credential ends, where it does."""


class SaslServer(Protocol):
    @property
    def may_block(self) -> bool:
        """Return whether `evaluate` takes too long for a network thread."""

    def evaluate(self, token: bytes) -> Step:
        """AuthenticationFailed ends the exchange."""


ServerFactory = Callable[[], SaslServer]


class PlainServer:
    """PLAIN (RFC 4616): authorization id, user and password, separated by zero bytes."""

    may_block = False

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords

    def evaluate(self, token: bytes) -> Step:
        try:
            parts = bytes(token[: _PLAIN_TOKEN_BYTES_MAX + 1]).decode().split("\0")
        except UnicodeDecodeError:
            parts = []
        if len(parts) != 3 or len(token) > _PLAIN_TOKEN_BYTES_MAX:
            raise AuthenticationFailed("Invalid SASL/PLAIN response: expected 3 tokens")
        authorization_id, user, password = parts
        if not user or not password:
            what = "password" if user else "username"
            raise AuthenticationFailed(f"Authentication failed: {what} not specified")
        expected = self._passwords.get(user)
        # Digests have one length: the time of the comparison says nothing about the password.
        equal = hmac.compare_digest(_digest(password), _digest("" if expected is None else expected))
        if expected is None or not equal:
            known = "" if expected is None else user
            raise AuthenticationFailed("Authentication failed: Invalid username or password", user=known)
        if authorization_id and authorization_id != user:
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username",
                user=user,
            )
        return Step(b"", KafkaPrincipal(USER_TYPE, user))


def _digest(password: str) -> bytes:
    return hashlib.sha256(password.encode()).digest()


class ScramIdentity(NamedTuple):
    """A credential and its principal: of a delegation token, the owner."""

    credential: ScramCredential
    principal: KafkaPrincipal
    expires_ms: int | None = None


def _decoy_salt(drawn: bytes, shape: CredentialShape) -> bytes:
    if shape.salt_bytes is not None:
        return hashlib.shake_256(drawn).digest(shape.salt_bytes)
    number, digits = int.from_bytes(drawn, "big") % (1 << JAVA_SALT_BITS), bytearray()
    while number:
        number, digit = divmod(number, len(SALT_DIGITS))
        digits.append(SALT_DIGITS[digit])
    return bytes(reversed(digits))


TokenLookup = Callable[[str, str], ScramIdentity | None]
"""Finds the identity of a delegation token by mechanism and token id; None: unknown or expired."""


@dataclass(frozen=True, slots=True)
class ScramSettings:
    mechanism: str
    credentials: CredentialStore
    secret: bytes
    """Salts for users that don't exist are derived from it, the same each time."""
    tokens: TokenLookup | None = None
    decoy_key: bytes = field(default_factory=lambda: secrets.token_bytes(max(_HASH_BYTES.values())), repr=False)
    """Stored key of users that don't exist: random, so that nothing is known whose hash it is."""


class ScramServer:
    may_block = False  # the password's hash is stored: what is left is four HMACs

    def __init__(self, settings: ScramSettings) -> None:
        self._settings = settings
        self._hash = HASH_OF_MECHANISM[settings.mechanism]
        self._first: ClientFirst | None = None
        self._first_answer = ""
        self._nonce = ""
        self._identity: ScramIdentity | None = None
        self._credential: ScramCredential | None = None
        self._is_over = False

    def evaluate(self, token: bytes) -> Step:
        try:
            if self._is_over:
                raise ScramError("the exchange is over")
            return self._begin(token) if self._first is None else self._end(self._first, token)
        except ScramError as error:
            self._is_over = True
            raise AuthenticationFailed(
                "Authentication failed during authentication due to invalid credentials with SASL mechanism "
                f"{self._settings.mechanism}",
                str(error),
                "" if self._identity is None else self._identity.principal.name,
            ) from None

    def _begin(self, token: bytes) -> Step:
        first = parse_client_first(token)
        if first.authorization_id and first.authorization_id != first.user:
            raise ScramError("authorization id is not the user")
        self._identity, decoy = self._identity_of(first), self._decoy(first.user)  # the same work for every name
        self._credential = decoy if self._identity is None else self._identity.credential
        self._first = first
        self._nonce = first.nonce + secrets.token_urlsafe(24)
        self._first_answer = server_first(self._nonce, self._credential.salt, self._credential.iterations)
        return Step(self._first_answer.encode())

    def _identity_of(self, first: ClientFirst) -> ScramIdentity | None:
        settings = self._settings
        if first.extensions.get(TOKEN_EXTENSION, "").lower() == "true":
            return None if settings.tokens is None else settings.tokens(settings.mechanism, first.user)
        credential = settings.credentials.scram_credential(settings.mechanism, first.user)
        if credential is None or credential.iterations < ITERATIONS_MIN:
            return None
        return ScramIdentity(credential, KafkaPrincipal(USER_TYPE, first.user))

    def _decoy(self, user: str) -> ScramCredential:
        """Make a false credential, which no password fits, in the shape of a true one."""
        settings = self._settings
        drawn = hashlib.blake2b(user.encode(), key=settings.secret).digest()
        shapes = settings.credentials.shapes(settings.mechanism) or (_DEFAULT_SHAPE,)
        shape = shapes[int.from_bytes(drawn[:8], "big") % len(shapes)]
        key = settings.decoy_key[: _HASH_BYTES[self._hash]]
        return ScramCredential(_decoy_salt(drawn, shape), key, key, shape.iterations)

    def _end(self, first: ClientFirst, token: bytes) -> Step:
        self._is_over = True
        final = parse_client_final(token)
        credential = self._credential
        assert credential is not None
        # librdkafka before 2.6.1 sends its own nonce twice, as Kafka 3.9 allows; the end of it is what makes it new
        if not final.nonce.endswith(self._nonce):
            raise ScramError("the nonce is not the one of this exchange")
        if final.channel_binding != first.gs2_header.encode():
            raise ScramError("the channel binding is not the one of the first message")
        auth_message = f"{first.bare},{self._first_answer},{final.without_proof}".encode()
        client_signature = signature(self._hash, credential.stored_key, auth_message)
        if len(final.proof) != len(client_signature):
            raise ScramError("the proof has another length than the hash")
        client_key = exclusive_or(final.proof, client_signature)
        proven = hmac.compare_digest(digest_of(self._hash, client_key), credential.stored_key)
        identity = self._identity
        if not proven or identity is None:
            raise ScramError("unknown user or wrong password")
        answer = b64encode(signature(self._hash, credential.server_key, auth_message)).decode()
        return Step(f"v={answer}".encode(), identity.principal, identity.expires_ms)
