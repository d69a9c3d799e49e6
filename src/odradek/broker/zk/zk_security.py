"""Security of the connection to ZooKeeper: `zookeeper.ssl.*` and `zookeeper.set.acl`, as in Kafka, and a digest.

ZooKeeper knows a broker by its certificate (authProvider.x509 on its side) or by user and password of
`odradek.zookeeper.digest`; Kafka's third way, SASL by a JAAS file, is refused.
"""

import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import PurePath

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.definition import Password
from odradek.base.errors import ConfigError
from odradek.base.value_classes import dataclass

_SOCKETS = ("org.apache.zookeeper.ClientCnxnSocketNetty", "org.apache.zookeeper.ClientCnxnSocketNIO")
_TYPES = {".jks": "JKS", ".pem": "PEM", ".p12": "PKCS12", ".pfx": "PKCS12"}
_DIGEST = re.compile(r"[^:\s]+:.+")


_JAAS_FILE = "java.security.auth.login.config"
_NO_SASL = (
    "SASL to ZooKeeper isn't supported, the broker would be nobody there. Use zookeeper.ssl.client.enable with "
    "zookeeper.ssl.keystore.location, or odradek.zookeeper.digest."
)


def check_java_options(options: str) -> None:
    """ConfigError for a JAAS file, by which Kafka's brokers log in to ZooKeeper and have the users of their listeners.

    `options` are those of KAFKA_OPTS, which an installation that moves from Kafka may still have."""
    if f"-D{_JAAS_FILE}" in options or "-Dzookeeper.sasl.client=true" in options:
        raise ConfigError(
            f"KAFKA_OPTS names {_JAAS_FILE} or zookeeper.sasl.client: JAAS files are not read. Login modules stand in "
            f"listener.name.LISTENER.MECHANISM.sasl.jaas.config. {_NO_SASL}"
        )


@dataclass(frozen=True, slots=True)
class ZkSecurity:
    tls: Mapping[str, str] | None = field(default=None, repr=False)
    """Settings of TLS under the names of a client, `ssl.*`; None: no TLS."""
    digest: str | None = field(default=None, repr=False)
    """USER:PASSWORD."""
    sets_acls: bool = False


PLAIN = ZkSecurity()


def zk_security(config: BrokerConfig) -> ZkSecurity:
    """ConfigError where settings can't be used together, or a store can't be read."""
    for key in config.originals:
        if key.startswith("zookeeper.sasl."):
            raise ConfigError(f"{key}: {_NO_SASL}")
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
    if sets_acls and digest is None and (tls is None or "ssl.keystore.location" not in tls):
        raise ConfigError(
            "zookeeper.set.acl needs a way by which ZooKeeper knows this broker: zookeeper.ssl.client.enable with "
            "zookeeper.ssl.keystore.location, or odradek.zookeeper.digest"
        )
    return ZkSecurity(tls, None if digest is None else digest.value, sets_acls)


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
