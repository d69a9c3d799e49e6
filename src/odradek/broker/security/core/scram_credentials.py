"""SCRAM credentials: derived from a salted password, written as Kafka writes them to `/config/users/<user>`. Pure.

SCRAM-SHA-256=salt=BASE64,stored_key=BASE64,server_key=BASE64,iterations=N
"""

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from dataclasses import field
from enum import Enum

from odradek.base.value_classes import dataclass


class ScramMechanism(Enum):
    """Wire number, and hash function by its name in hashlib. The least and most iterations are Kafka's."""

    SCRAM_SHA_256 = (1, "sha256")
    SCRAM_SHA_512 = (2, "sha512")

    def __init__(self, number: int, hash_name: str) -> None:
        self.number = number
        self.hash_name = hash_name

    @property
    def mechanism_name(self) -> str:
        """The name in SASL and in the configuration: SCRAM-SHA-256."""
        return self.name.replace("_", "-")


MECHANISMS = {mechanism.mechanism_name: mechanism for mechanism in ScramMechanism}
MECHANISM_OF_NUMBER = {mechanism.number: mechanism for mechanism in ScramMechanism}
ITERATIONS_MIN = 4096
ITERATIONS_MAX = 16384
_FIELDS = ("salt", "stored_key", "server_key", "iterations")


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """Proves a password without containing it; never shown, because a weak password can be found from it."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


def credential_of_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> ScramCredential:
    salted = hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)
    return credential_of_salted_password(mechanism, salted, salt, iterations)


def credential_of_salted_password(
    mechanism: ScramMechanism, salted_password: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    client_key = hmac.digest(salted_password, b"Client Key", mechanism.hash_name)
    stored_key = hashlib.new(mechanism.hash_name, client_key).digest()
    server_key = hmac.digest(salted_password, b"Server Key", mechanism.hash_name)
    return ScramCredential(salt, stored_key, server_key, iterations)


def credential_text(credential: ScramCredential) -> str:
    values = (
        b64encode(credential.salt).decode(),
        b64encode(credential.stored_key).decode(),
        b64encode(credential.server_key).decode(),
        str(credential.iterations),
    )
    return ",".join(f"{name}={value}" for name, value in zip(_FIELDS, values, strict=True))


def parse_credential(text: str) -> ScramCredential:
    """ValueError, without a word of the content, for a text that isn't a credential."""
    pairs = [pair.partition("=") for pair in text.split(",")]
    fields = {name: value for name, _, value in pairs}
    if len(pairs) != len(_FIELDS) or fields.keys() != set(_FIELDS):
        raise ValueError("a SCRAM credential has the fields salt, stored_key, server_key and iterations")
    if not re.fullmatch(r"[0-9]{1,9}", fields["iterations"]):
        raise ValueError("iterations of a SCRAM credential is not a number")
    try:
        salt, stored_key, server_key = (b64decode(fields[name], validate=True) for name in _FIELDS[:3])
    except ValueError:
        raise ValueError("a field of a SCRAM credential is not in base64") from None
    return ScramCredential(salt, stored_key, server_key, int(fields["iterations"]))
