"""SASL/OAUTHBEARER messages (RFC 7628), as Kafka's clients write them. Pure.

    n,,\\x01auth=Bearer TOKEN\\x01NAME=VALUE\\x01\\x01

A refused token is answered with a JSON text; the client sends one byte, and then the exchange fails.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import field

from odradek.base.errors import ConfigError
from odradek.base.value_classes import dataclass

SEPARATOR = "\x01"
ACKNOWLEDGED = b"\x01"
"""Answer of a client to the JSON text that tells why its token is refused."""
_AUTHORIZATION_ID = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]++|=2C|=3D)++"  # possessive: see scram
_FIRST = re.compile(rf"n,(?:a=({_AUTHORIZATION_ID}))?,\x01(.*\x01)?\x01", re.DOTALL)
_NAME = re.compile(r"[A-Za-z]+")
_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")
_BEARER = re.compile(r"(\w+) +([-_~+/.a-zA-Z0-9]+=*)")


class OAuthMessageError(Exception):
    """The message isn't one of OAUTHBEARER. The text shows nothing of it: it has a token."""


@dataclass(frozen=True, slots=True)
class ClientInitial:
    token: str = field(repr=False)
    authorization_id: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)


def parse_client_initial(data: bytes) -> ClientInitial:
    try:
        found = _FIRST.fullmatch(data.decode())
    except UnicodeDecodeError:
        found = None
    if found is None:
        raise OAuthMessageError("the first message has another form")
    pairs: dict[str, str] = {}
    for pair in (found[2] or "").split(SEPARATOR)[:-1]:
        name, equals, value = pair.partition("=")
        if not equals or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value) or name in pairs:
            raise OAuthMessageError("a pair of the first message is malformed, or stands there twice")
        pairs[name] = value
    bearer = _BEARER.fullmatch(pairs.pop("auth", ""))
    if bearer is None or bearer[1].lower() != "bearer":
        raise OAuthMessageError("the first message has no bearer token")
    authorization_id = (found[1] or "").replace("=2C", ",").replace("=3D", "=")
    return ClientInitial(bearer[2], authorization_id, pairs)


def client_initial(token: str, extensions: Mapping[str, str]) -> bytes:
    pairs = "".join(f"{name}={value}{SEPARATOR}" for name, value in extensions.items())
    return f"n,,{SEPARATOR}auth=Bearer {token}{SEPARATOR}{pairs}{SEPARATOR}".encode()


def extensions_of(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Extensions among the options of a login module. ConfigError where one can't be sent."""
    found = {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)}
    for name, value in found.items():
        if name == "auth" or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise ConfigError(f"sasl.jaas.config: extension {name} has an invalid name or value")
    return found


def refusal(status: str, scope: str | None = None) -> str:
    """Text for a client whose token is refused."""
    text = f'{{"status":{json.dumps(status)}'
    return f'{text}, "scope":{json.dumps(scope)}}}' if scope is not None else f"{text}}}"
