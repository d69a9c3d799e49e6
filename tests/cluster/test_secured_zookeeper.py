"""ZooKeeper behind TLS: brokers that it knows by their certificates, and rights on every node, as Kafka sets them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from apache_kafka import broker_command
from kafka_tools import KafkaTools
from odradek.base.config.properties import format_properties
from odradek.broker.zk.zk_security import DIGEST_MODULE
from odradek.local.java import find_java
from odradek.local.local_broker import serves
from odradek.local.owned_process import OwnedProcess
from odradek.local.zookeeper_server import EmbeddedZooKeeper, free_port
from odradek.security.certificates import issue, new_authority
from waiting import eventually

from .own_broker import OwnBroker, running, write_values

X509 = "org.apache.zookeeper.server.auth.X509AuthenticationProvider"
NETTY = "org.apache.zookeeper.server.NettyServerCnxnFactory"
SASL = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
ZK_PASSWORD = "s3cret of brokers"


class TlsZooKeeper(EmbeddedZooKeeper):
    """A server of Kafka's jars, which have what TLS needs."""

    jars: Path
    java_options: tuple[str, ...] = ()

    def _command(self) -> list[str]:
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        java = [str(find_java()), "-Xmx96m", "-XX:+UseSerialGC", *self.java_options]
        return [*java, "-cp", f"{self.jars}/*", main]


@dataclass
class Secured:
    plain: str
    """Address without TLS, for strangers."""
    secure: str
    directory: Path

    def settings(self, **others: str) -> dict[str, str]:
        return {
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
            "zookeeper.ssl.keystore.location": str(self.directory / "broker.pem"),
            "zookeeper.ssl.truststore.location": str(self.directory / "ca.pem"),
            "zookeeper.set.acl": "true",
            # The first handshake of a JVM takes seconds.
            "zookeeper.session.timeout.ms": "20000",
            "zookeeper.connection.timeout.ms": "20000",
            **{key.replace("_", "."): value for key, value in others.items()},
        }

    @contextmanager
    def colleague(self) -> Iterator[KazooClient]:
        """A client with the brokers' certificate."""
        own = str(self.directory / "broker.pem")
        client = KazooClient(self.secure, use_ssl=True, certfile=own, keyfile=own, ca=str(self.directory / "ca.pem"))
        client.start(20)
        try:
            yield client
        finally:
            client.stop()
            client.close()

    @contextmanager
    def stranger(self, digest: str | None = None) -> Iterator[KazooClient]:
        client = KazooClient(self.plain, auth_data=[("digest", digest)] if digest else [])
        client.start(20)
        try:
            yield client
        finally:
            client.stop()
            client.close()


@pytest.fixture(scope="module")
def secured(kafka_lib: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory, port = tmp_path_factory.mktemp("zk"), free_port()
    authority = new_authority("test CA", 2)
    (directory / "ca.pem").write_bytes(authority.certificate)
    for name in ("server", "broker"):
        made = issue(authority, name, ["localhost", "127.0.0.1"], 2)
        (directory / f"{name}.pem").write_bytes(made.key + made.certificate)
    settings = f"secureClientPort={port}\nserverCnxnFactory={NETTY}\nauthProvider.x509={X509}\n"
    stores = f"ssl.keyStore.location={directory}/server.pem\nssl.trustStore.location={directory}/ca.pem\n"
    (directory / "jaas.conf").write_text(f'Server {{ {DIGEST_MODULE} required user_kafka="{ZK_PASSWORD}"; }};')
    sasl = f"authProvider.sasl={SASL}\n"
    zookeeper = TlsZooKeeper(directory / "zookeeper", settings=settings + stores + sasl)
    zookeeper.jars = kafka_lib
    zookeeper.java_options = (f"-Djava.security.auth.login.config={directory}/jaas.conf",)
    zookeeper.start()
    try:
        yield Secured(zookeeper.connect, f"localhost:{port}", directory)
    finally:
        zookeeper.stop()


def acls(client: KazooClient, root: str) -> dict[str, list[tuple[int, str, str]]]:
    """Rights of each node below, by its path without the root."""
    found, waiting = {}, [root]
    while waiting:
        path = waiting.pop()
        rights, _ = client.get_acls(path)
        found[path.removeprefix(root)] = sorted((acl.perms, acl.id.scheme, acl.id.id) for acl in rights)
        waiting += [f"{path}/{child}" for child in client.get_children(path)]
    return found


@contextmanager
def apache_kafka(secured: Secured, jars: Path, directory: Path) -> Iterator[str]:
    port, file = free_port(), directory / "server.properties"
    settings = {
        "broker.id": "0",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": f"{directory}/logs",
        "zookeeper.connect": f"{secured.secure}/kafka",
        **secured.settings(),
    }
    file.write_text(format_properties(settings))
    process = OwnedProcess(directory / "broker.pid", file)
    process.spawn(broker_command(jars)(file), directory / "broker.log")
    try:
        eventually(lambda: serves(("127.0.0.1", port)))
        yield f"127.0.0.1:{port}"
    finally:
        process.stop(30)


def add_user(tools: KafkaTools, bootstrap: str) -> None:
    done = tools.run(
        "kafka-configs", "--bootstrap-server", bootstrap, "--alter", "--entity-type", "users", "--entity-name",
        "alice", "--add-config", "SCRAM-SHA-256=[password=secret of alice]",
    )  # fmt: skip
    assert done.status == 0, done.text
    made = tools.run("kafka-topics", "--bootstrap-server", bootstrap, "--create", "--topic", "t")
    assert made.status == 0, made.text


def test_strangers_read_little_and_change_nothing(secured: Secured, kafka_tools: KafkaTools, tmp_path: Path) -> None:
    broker, root = OwnBroker(tmp_path, secured.secure), f"/{tmp_path.name}"
    broker.set(secured.settings())
    with running(broker), secured.stranger() as stranger:
        add_user(kafka_tools, broker.bootstrap)
        with broker.client() as client:
            write_values(client, "t", [b"hello"])
        for path in ("config/users/alice", "config/brokers"):
            with pytest.raises(NoAuthError):
                stranger.get(f"{root}/{path}")
        assert stranger.get(f"{root}/brokers/ids/0")[0].startswith(b"{")
        for path in ("brokers/ids/0", "controller_epoch", "config/users", "brokers/topics/t"):
            with pytest.raises(NoAuthError):
                stranger.set(f"{root}/{path}", b"{}")


@pytest.mark.soak
def test_rights_are_those_of_kafka(secured: Secured, kafka_lib: Path, kafka_tools: KafkaTools, tmp_path: Path) -> None:
    own = tmp_path / "odradek"
    own.mkdir()
    broker = OwnBroker(own, secured.secure)
    broker.set(secured.settings())
    with secured.colleague() as colleague:
        with running(broker):
            add_user(kafka_tools, broker.bootstrap)
            ours = acls(colleague, "/odradek")
        with apache_kafka(secured, kafka_lib, tmp_path) as bootstrap:
            add_user(kafka_tools, bootstrap)
            theirs = acls(colleague, "/kafka")
    common = {path for path in ours if path in theirs}
    assert {"/controller", "/brokers/topics/t/partitions/0/state", "/config/users", "/consumers", ""} <= common
    assert {path: ours[path] for path in common} == {path: theirs[path] for path in common}


def test_a_digest_keeps_strangers_out_too(secured: Secured, tmp_path: Path) -> None:
    broker = OwnBroker(tmp_path, secured.plain, zookeeper_set_acl="true", odradek_zookeeper_digest="broker:s3cret:x")
    with running(broker), secured.stranger() as stranger, secured.stranger("broker:s3cret:x") as colleague:
        root = f"/{tmp_path.name}"
        with pytest.raises(NoAuthError):
            stranger.get_children(f"{root}/config/users")
        assert colleague.get_children(f"{root}/config/users") == []
        assert "s3cret" not in broker.log


def jaas_options(directory: Path, password: str) -> str:
    file = directory / "client.jaas"
    file.write_text(f'Client {{ {DIGEST_MODULE} required username="kafka" password="{password}"; }};')
    return f"-Djava.security.auth.login.config={file}"


def test_sasl_by_kafka_s_jaas_file(secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_OPTS", jaas_options(tmp_path, ZK_PASSWORD))
    root = f"/{tmp_path.name}"
    broker = OwnBroker(tmp_path, secured.plain, zookeeper_set_acl="true")
    with running(broker), secured.stranger() as stranger:
        broker.create_topic("t")
        rights, _ = stranger.get_acls(f"{root}/brokers/topics/t")
        assert ("sasl", "kafka") in {(acl.id.scheme, acl.id.id) for acl in rights}
        with pytest.raises(NoAuthError):
            stranger.get_children(f"{root}/config/users")
        with pytest.raises(NoAuthError):
            stranger.set(f"{root}/brokers/topics/t", b"{}")
        assert ZK_PASSWORD not in broker.log


def test_sasl_with_a_wrong_password_stops_the_start(
    secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_OPTS", jaas_options(tmp_path, "wrong"))
    broker = OwnBroker(tmp_path, secured.plain, zookeeper_connection_timeout_ms="5000")
    with pytest.raises(AssertionError, match="the broker is gone"):
        broker.start()
    assert "AUTH_FAILED" in broker.log or "AuthFailed" in broker.log


def test_a_server_of_another_authority_is_refused(secured: Secured, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    other.write_bytes(new_authority("another", 1).certificate)
    settings = secured.settings(zookeeper_connection_timeout_ms="1500")
    for changed, why in (
        ({"zookeeper.ssl.truststore.location": str(other)}, "certificate"),
        ({"zookeeper.connect": secured.secure.replace("localhost", "127.0.0.2") + "/x"}, "mismatch"),
    ):
        directory = tmp_path / why
        directory.mkdir()
        broker = OwnBroker(directory, secured.secure)
        broker.set(settings | changed)
        with pytest.raises(AssertionError, match="the broker is gone"):
            broker.start()
        assert "TLS with ZooKeeper failed" in broker.log
        assert why in broker.log
