"""Security of the connection to ZooKeeper: settings, and rights of each path."""

from pathlib import Path

import pytest

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ConfigError
from odradek.broker.zk.zk_security import PLAIN, check_java_options, zk_security
from odradek.broker.zk.znodes.access_rights import ZnodeRights, rights_of
from odradek.security.certificates import new_authority

BASE = {"zookeeper.connect": "zk:2181"}
ENABLED = {"zookeeper.ssl.client.enable": "true"}


@pytest.mark.parametrize(
    ("path", "rights"),
    [
        ("/", ZnodeRights.READABLE),
        ("/consumers", ZnodeRights.OPEN),
        ("/consumers/g", ZnodeRights.READABLE),
        ("/brokers/ids/0", ZnodeRights.READABLE),
        ("/controller", ZnodeRights.READABLE),
        ("/config/topics/t", ZnodeRights.READABLE),
        ("/config/users", ZnodeRights.PRIVATE),
        ("/config/users/alice", ZnodeRights.PRIVATE),
        ("/config/brokers/0", ZnodeRights.PRIVATE),
        ("/delegation_token", ZnodeRights.READABLE),
        ("/delegation_token/tokens/x", ZnodeRights.PRIVATE),
        ("/delegation_token/token_changes", ZnodeRights.READABLE),
        ("/kafka-acl/Topic/t", ZnodeRights.READABLE),
    ],
)
def test_rights_are_kafka_s(path: str, rights: ZnodeRights) -> None:
    assert rights_of(path) is rights


@pytest.mark.parametrize(
    "key", ["zookeeper.sasl.client", "zookeeper.sasl.clientconfig", "zookeeper.sasl.client.username"]
)
def test_sasl_is_refused_by_name(key: str) -> None:
    with pytest.raises(ConfigError, match=rf"{key}: SASL to ZooKeeper isn't supported"):
        zk_security(BrokerConfig.from_properties({**BASE, key: "true"}))


def test_a_jaas_file_is_refused_by_name() -> None:
    """An installation that moves from Kafka would lose its login to ZooKeeper, and the users of its listeners."""
    for options in ("-Xmx1g -Djava.security.auth.login.config=/etc/kafka/jaas.conf", "-Dzookeeper.sasl.client=true"):
        with pytest.raises(ConfigError, match="JAAS files are not read"):
            check_java_options(options)
    for options in ("", "-Xmx1g -Djava.security.krb5.conf=/etc/krb5.conf", "-Dzookeeper.sasl.client=false"):
        check_java_options(options)


def test_without_settings_nothing_is_secured() -> None:
    assert zk_security(BrokerConfig.from_properties(BASE)) == PLAIN


def test_settings_of_tls(tmp_path: Path) -> None:
    authority = new_authority("zk", 2)
    store = tmp_path / "broker.pem"
    store.write_bytes(authority.key + authority.certificate)
    settings = {
        **ENABLED,
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "zookeeper.ssl.keystore.location": str(store),
        "zookeeper.ssl.truststore.location": str(store),
        "zookeeper.ssl.truststore.type": "PEM",
        "zookeeper.set.acl": "true",
    }
    found = zk_security(BrokerConfig.from_properties(BASE | settings))
    assert found.sets_acls
    assert found.tls is not None
    assert found.tls["ssl.keystore.type"] == "PEM", "by the file's ending"
    assert (found.tls["ssl.enabled.protocols"], found.tls["ssl.protocol"]) == ("TLSv1.2", "TLSv1.2")
    newer = settings | {"zookeeper.ssl.enabled.protocols": "TLSv1.2,TLSv1.3"}
    found = zk_security(BrokerConfig.from_properties(BASE | newer))
    assert found.tls is not None
    assert (found.tls["ssl.enabled.protocols"], found.tls["ssl.protocol"]) == ("TLSv1.2,TLSv1.3", "TLS")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"zookeeper.set.acl": "true"}, "needs a way by which ZooKeeper knows this broker"),
        ({"zookeeper.set.acl": "true", **ENABLED}, "needs a way by which ZooKeeper knows this broker"),
        ({**ENABLED, "zookeeper.ssl.keystore.location": "/no/such"}, "ssl.keystore.location"),
        ({**ENABLED, "zookeeper.ssl.protocol": "SSLv3"}, "SSLv3"),
        ({"zookeeper.clientCnxnSocket": "com.example.Socket"}, "com.example.Socket"),
        ({"odradek.zookeeper.digest": "no-password"}, "USER:PASSWORD"),
        ({**ENABLED, "zookeeper.ssl.crl.enable": "true"}, "revocation"),
        ({**ENABLED, "zookeeper.ssl.ocsp.enable": "true"}, "revocation"),
    ],
)
def test_settings_that_can_not_be_obeyed(settings: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why) as error:
        zk_security(BrokerConfig.from_properties(BASE | settings))
    assert "no-password" not in str(error.value)


def test_a_digest_is_never_shown() -> None:
    found = zk_security(BrokerConfig.from_properties(BASE | {"odradek.zookeeper.digest": "broker:hunter2"}))
    assert found.digest == "broker:hunter2"
    assert "hunter2" not in repr(found)
