"""`sasl.jaas.config`: one login module with its options, as Kafka's settings have it. Pure.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="secret";

A closed list of modules is known, and none of them is loaded as code: the name only says which options are meant.
"""

import re
from collections.abc import Mapping
from dataclasses import field

from odradek.base.errors import ConfigError
from odradek.base.value_classes import dataclass

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KERBEROS_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
_MODULES = {
    "PLAIN": PLAIN_MODULE,
    "SCRAM-SHA-256": SCRAM_MODULE,
    "SCRAM-SHA-512": SCRAM_MODULE,
    "OAUTHBEARER": OAUTH_MODULE,
    "GSSAPI": KERBEROS_MODULE,
}
_FLAGS = ("required", "requisite", "sufficient", "optional")
_TOKEN = re.compile(r'\s*(?:"((?:\\.|[^"\\])*)"|\'((?:\\.|[^\'\\])*)\'|([;=])|([^\s;="\']+))')
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|/\*.*?\*/|//[^\n]*', re.DOTALL)
_SECTION = re.compile(r'\s*([^\s{}";=]+)\s*\{((?:"(?:\\.|[^"\\])*"|[^"{}])*)\}\s*;')
_TEXT_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class LoginModule:
    name: str
    options: Mapping[str, str] = field(repr=False)


def login_module(key: str, text: str, mechanism: str) -> LoginModule:
    """The module of `text` under `key`, which must be the mechanism's. ConfigError never shows the text: it has
    passwords."""
    module, expected = _module(key, text), _MODULES.get(mechanism)
    if module.name != expected:
        raise ConfigError(f"{key}: login module {module.name} is not supported for {mechanism}; valid is {expected}")
    return module


def jaas_sections(location: str, text: str) -> dict[str, LoginModule]:
    """The sections of a JAAS file, each with its one login module. ConfigError never shows the text.

    Client {
        org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="secret";
    };
    """
    plain, at = _COMMENT.sub(lambda found: found[1] or " ", text), 0
    sections: dict[str, LoginModule] = {}
    while plain[at:].strip():
        found = _SECTION.match(plain, at)
        if found is None or found[1] in sections:
            raise ConfigError(f"{location}: expected sections NAME {{ MODULE required … ; }};, each once")
        sections[found[1]] = _module(f"{location}, {found[1]}", found[2])
        at = found.end()
    return sections


def _module(key: str, text: str) -> LoginModule:
    tokens = _tokens(key, text)
    if len(tokens) < 3 or tokens[1].lower() not in _FLAGS or tokens[-1] != ";" or tokens.count(";") != 1:
        raise ConfigError(f'{key}: expected MODULE required NAME="VALUE" … ;')
    rest = tokens[2:-1]
    if len(rest) % 3 or any(rest[i + 1] != "=" for i in range(0, len(rest), 3)):
        raise ConfigError(f'{key}: options are written NAME="VALUE"')
    return LoginModule(tokens[0], {rest[i]: rest[i + 2] for i in range(0, len(rest), 3)})


def _tokens(key: str, text: str) -> list[str]:
    if len(text) > _TEXT_MAX:
        raise ConfigError(f"{key} is longer than {_TEXT_MAX} characters")
    tokens: list[str] = []
    at, text = 0, text.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ConfigError(f"{key}: a quotation mark is missing")
        quoted = found[1] if found[1] is not None else found[2]
        tokens.append((found[3] or found[4]) if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
        at = found.end()
    return tokens
