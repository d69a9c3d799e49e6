"""Security of the connection to ZooKeeper: settings, and rights of each path."""

from pathlib import Path

import pytest

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ConfigError
from odradek.broker.zk.zk_security import DIGEST_MODULE, PLAIN, ZkLogin, zk_login, zk_security
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
def test_sasl_has_no_settings(key: str) -> None:
    with pytest.raises(ConfigError, match=rf"{key} is no setting of a broker"):
        zk_security(BrokerConfig.from_properties({**BASE, key: "true"}))


CLIENT = f'Client {{ {DIGEST_MODULE} required username="kafka" password="a \\"secret\\" // {{"; }};'


def options_for(directory: Path, text: str, *others: str) -> str:
    (directory / "jaas.conf").write_text(text)
    return " ".join(("-Xmx1g", f"-Djava.security.auth.login.config={directory}/jaas.conf", *others))


def test_the_login_of_a_jaas_file(tmp_path: Path) -> None:
    text = f"/* of brokers */\n{CLIENT} // the end"
    assert zk_login(options_for(tmp_path, text)) == ZkLogin("kafka", 'a "secret" // {')
    named = options_for(tmp_path, CLIENT.replace("Client", "Zk"), "-Dzookeeper.sasl.clientconfig=Zk")
    assert zk_login(named) == ZkLogin("kafka", 'a "secret" // {')
    assert zk_login(options_for(tmp_path, CLIENT, "-Dzookeeper.sasl.client=false")) is None
    assert "secret" not in repr(zk_login(options_for(tmp_path, CLIENT)))
    for options in ("", "-Xmx1g -Djava.security.krb5.conf=/etc/krb5.conf", "-Dzookeeper.sasl.client=false"):
        assert zk_login(options) is None


@pytest.mark.parametrize(
    "text",
    [
        CLIENT + CLIENT.replace("Client", "KafkaServer"),
        CLIENT + CLIENT,
        CLIENT.replace(DIGEST_MODULE, "com.sun.security.auth.module.Krb5LoginModule"),
        CLIENT.replace(DIGEST_MODULE, "com.sun.security.auth.module.JndiLoginModule"),
        CLIENT.replace("username", "user"),
        CLIENT[:-3],
        "Client { };",
        CLIENT.replace("required", "perhaps"),
    ],
)
def test_a_jaas_file_that_can_not_be_obeyed_is_refused_and_not_shown(tmp_path: Path, text: str) -> None:
    """An installation that moves from Kafka would lose its login to ZooKeeper, or the users of its listeners."""
    with pytest.raises(ConfigError) as refused:
        zk_login(options_for(tmp_path, text))
    assert "secret" not in str(refused.value)


def test_options_without_a_file_that_can_be_read_are_refused(tmp_path: Path) -> None:
    for options in ("-Dzookeeper.sasl.client=true", f"-Djava.security.auth.login.config={tmp_path}/none", "-Da='"):
        with pytest.raises(ConfigError):
            zk_login(options)


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
