"""Security of the connection to ZooKeeper: `zookeeper.ssl.*` and `zookeeper.set.acl`, as in Kafka, a digest, and SASL.

ZooKeeper knows a broker by its certificate (authProvider.x509 on its side), by user and password of
`odradek.zookeeper.digest`, or by SASL, which Kafka has no setting for: a JAAS file that KAFKA_OPTS names has it, in the
section `Client`. DIGEST-MD5 is spoken, Kerberos is refused.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path, PurePath

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.definition import Password
from odradek.base.errors import ConfigError
from odradek.base.value_classes import dataclass
from odradek.security.jaas import jaas_sections

_SOCKETS = ("org.apache.zookeeper.ClientCnxnSocketNetty", "org.apache.zookeeper.ClientCnxnSocketNIO")
_TYPES = {".jks": "JKS", ".pem": "PEM", ".p12": "PKCS12", ".pfx": "PKCS12"}
_DIGEST = re.compile(r"[^:\s]+:.+")


_JAAS_FILE = "-Djava.security.auth.login.config"
_CLIENT = "-Dzookeeper.sasl.client"
_SECTION = "-Dzookeeper.sasl.clientconfig"
DIGEST_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
_FILE_BYTES_MAX = 1 << 20
_OTHERS = (
    "Use zookeeper.ssl.client.enable with zookeeper.ssl.keystore.location, odradek.zookeeper.digest, or a JAAS file "
    "with a DigestLoginModule."
)


@dataclass(frozen=True, slots=True)
class ZkLogin:
    """User and password of SASL."""

    user: str
    password: str = field(repr=False)


def zk_login(java_options: str) -> ZkLogin | None:
    """The login of the JAAS file that KAFKA_OPTS names, as for Kafka's brokers; None where it names none.

    ConfigError if it can't be used: the broker would not be authenticated to ZooKeeper, or its listeners would lack the
    users in the file.
    """
    try:
        options = dict(word.partition("=")[::2] for word in shlex.split(java_options) if word.startswith("-D"))
    except ValueError as error:
        raise ConfigError(f"KAFKA_OPTS can't be read: {error}") from None
    is_off, location = options.get(_CLIENT) == "false", options.get(_JAAS_FILE)
    if location is None:
        if options.get(_CLIENT) == "true":
            raise ConfigError(f"KAFKA_OPTS has {_CLIENT[2:]}=true and names no {_JAAS_FILE[2:]}. {_OTHERS}")
        return None
    section = options.get(_SECTION, "Client")
    sections = jaas_sections(location, _read(location))
    if others := sections.keys() - {section}:
        raise ConfigError(
            f"{location}: section {', '.join(sorted(others))} is not read. Login modules of listeners stand in "
            "listener.name.LISTENER.MECHANISM.sasl.jaas.config"
        )
    module = sections.get(section)
    if is_off or module is None:
        return None
    if module.name != DIGEST_MODULE:
        raise ConfigError(f"{location}: login module {module.name} is not supported for ZooKeeper. {_OTHERS}")
    user, password = module.options.get("username"), module.options.get("password")
    if not user or not password:
        raise ConfigError(f"{location}: {section} needs username and password")
    return ZkLogin(user, password)


def _read(location: str) -> str:
    try:
        with Path(location).open(encoding="utf-8") as file:
            text = file.read(_FILE_BYTES_MAX + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{location}, which KAFKA_OPTS names, can't be read: {error}") from None
    if len(text) > _FILE_BYTES_MAX:
        raise ConfigError(f"{location} is longer than {_FILE_BYTES_MAX} characters")
    return text


@dataclass(frozen=True, slots=True)
class ZkSecurity:
    tls: Mapping[str, str] | None = field(default=None, repr=False)
    """Settings of TLS under the names of a client, `ssl.*`; None: no TLS."""
    digest: str | None = field(default=None, repr=False)
    """USER:PASSWORD."""
    sets_acls: bool = False
    login: ZkLogin | None = None
    """Login by SASL; None: no SASL."""


PLAIN = ZkSecurity()


def zk_security(config: BrokerConfig, login: ZkLogin | None = None) -> ZkSecurity:
    """ConfigError where settings can't be used together, or a store can't be read."""
    for key in config.originals:
        if key.startswith("zookeeper.sasl."):
            raise ConfigError(f"{key} is no setting of a broker, but an option in KAFKA_OPTS: -D{key}. {_OTHERS}")
    name = config.get("zookeeper.clientCnxnSocket")
    if name is not None and name not in _SOCKETS:
        raise ConfigError(
            f"Invalid value {name} for configuration zookeeper.clientCnxnSocket: Java classes can't run in this "
            f"broker. Valid here: no value, or {', '.join(_SOCKETS)}."
        )
    tls = _tls(config) if config.zookeeper_ssl_client_enable else None
    digest = config.get("odradek.zookeeper.digest")
    assert digest is None or isinstance(digest, Password)
    if digest is not None and not _DIGEST.fullmatch(digest.value):
        raise ConfigError("odradek.zookeeper.digest is written USER:PASSWORD")
    sets_acls = config.zookeeper_set_acl
    if sets_acls and digest is None and login is None and (tls is None or "ssl.keystore.location" not in tls):
        raise ConfigError(f"zookeeper.set.acl needs a way by which ZooKeeper knows this broker. {_OTHERS}")
    return ZkSecurity(tls, None if digest is None else digest.value, sets_acls, login)


def _tls(config: BrokerConfig) -> dict[str, str]:
    from odradek.security.tls_contexts import client_context

    def text(key: str) -> str | None:
        value = config.get(key)
        return value.value if isinstance(value, Password) else None if value is None else str(value)

    protocol = text("zookeeper.ssl.protocol") or "TLSv1.2"
    enabled, suites = config.get("zookeeper.ssl.enabled.protocols"), config.get("zookeeper.ssl.cipher.suites")
    settings = {
        "ssl.protocol": "TLS" if enabled else protocol,
        "ssl.enabled.protocols": ",".join(enabled) if isinstance(enabled, tuple) and enabled else protocol,
        "ssl.cipher.suites": ",".join(suites) if isinstance(suites, tuple) else "",
        "ssl.endpoint.identification.algorithm": text("zookeeper.ssl.endpoint.identification.algorithm") or "",
    }
    if settings["ssl.enabled.protocols"] == "TLS":
        settings["ssl.enabled.protocols"] = "TLSv1.2,TLSv1.3"
    stores = (
        ("keystore", text("zookeeper.ssl.keystore.location"), text("zookeeper.ssl.keystore.password"),
         text("zookeeper.ssl.keystore.type")),
        ("truststore", text("zookeeper.ssl.truststore.location"), text("zookeeper.ssl.truststore.password"),
         text("zookeeper.ssl.truststore.type")),
    )  # fmt: skip
    for store, location, password, kind in stores:
        if not location:
            continue
        settings[f"ssl.{store}.location"] = location
        settings[f"ssl.{store}.type"] = kind or _TYPES.get(PurePath(location).suffix.lower(), "JKS")
        if password is not None:
            settings[f"ssl.{store}.password"] = password
            if store == "keystore":
                settings["ssl.key.password"] = password
    client_context(settings)
    return settings
