"""One broker with a listener of every security protocol, and the clients that people use."""

import asyncio
import json
import socket
import ssl
import struct
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from kafka import KafkaConsumer, KafkaProducer
from kazoo.client import KazooClient

from foreign_clients import kafkajs_login
from kafka_tools import KafkaTools
from obtaining import skipped_if_unobtainable
from odradek.base.config.properties import format_properties
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.client.client_security import ClientSecurity
from odradek.local.zookeeper_server import free_port
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.security.certificates import IssuedCertificate, issue, new_authority
from odradek.security.jaas import PLAIN_MODULE, SCRAM_MODULE
from odradek.security.password_encoder import PasswordEncoder
from odradek.security.scram import HASH_OF_MECHANISM
from waiting import eventually

from .conftest import unused_name
from .own_broker import STEADY, OwnBroker, run_odradek, running

PASSWORD = 'pass="w,o;rd'
PROTOCOLS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass
class Secured:
    broker: OwnBroker
    directory: Path
    ports: dict[str, int]
    authority: IssuedCertificate
    user: IssuedCertificate

    def bootstrap(self, protocol: str) -> str:
        return f"localhost:{self.ports[protocol]}"

    def settings(self, protocol: str, mechanism: str = "", password: str = PASSWORD) -> dict[str, str]:
        """Settings of a client, as Kafka's tools take them from a file."""
        settings = {"security.protocol": protocol}
        if protocol != "SASL_PLAINTEXT":
            settings["ssl.truststore.type"] = "PEM"
            settings["ssl.truststore.location"] = str(self.directory / "ca.pem")
        if protocol == "SSL":
            settings["ssl.keystore.type"] = "PEM"
            settings["ssl.keystore.location"] = str(self.directory / "alice.pem")
        else:
            module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
            quoted = password.replace("\\", "\\\\").replace('"', '\\"')
            settings["sasl.mechanism"] = mechanism
            settings["sasl.jaas.config"] = f'{module} required username="alice" password="{quoted}";'
        return settings

    def file(self, protocol: str, mechanism: str = "", password: str = PASSWORD) -> Path:
        path = self.directory / f"{protocol}-{mechanism}-{len(password)}.properties"
        path.write_text(format_properties(self.settings(protocol, mechanism, password)))
        return path

    def librdkafka(self, protocol: str, mechanism: str, password: str = PASSWORD) -> dict[str, str | int]:
        settings: dict[str, str | int] = {
            "bootstrap.servers": self.bootstrap(protocol),
            "security.protocol": protocol,
            "log_level": 0,
            "ssl.ca.location": str(self.directory / "ca.pem"),
        }
        if protocol == "SSL":
            key, certificate = str(self.directory / "alice.key"), str(self.directory / "alice.crt")
            return {**settings, "ssl.key.location": key, "ssl.certificate.location": certificate}
        return {**settings, "sasl.mechanism": mechanism, "sasl.username": "alice", "sasl.password": password}

    def python_settings(self, protocol: str, mechanism: str) -> dict[str, Any]:
        """Settings of kafka-python and aiokafka."""
        settings: dict[str, Any] = {"bootstrap_servers": self.bootstrap(protocol), "security_protocol": protocol}
        if protocol != "SASL_PLAINTEXT":
            settings["ssl_context"] = self.context()
        if protocol != "SSL":
            settings |= {"sasl_mechanism": mechanism, "sasl_plain_username": "alice", "sasl_plain_password": PASSWORD}
        return settings

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.directory / "ca.pem"))
        context.load_cert_chain(self.directory / "alice.pem")
        return context


@pytest.fixture(scope="module")
def secured(zookeeper: str, tmp_path_factory: pytest.TempPathFactory, kafka_tools: KafkaTools) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("secured")
    authority = new_authority("test CA", 2)
    host = issue(authority, "broker", ["localhost"], 2)
    alice = issue(authority, "alice", [], 2)
    (directory / "ca.pem").write_bytes(authority.certificate)
    (directory / "broker.pem").write_bytes(host.key + host.certificate)
    (directory / "alice.pem").write_bytes(alice.key + alice.certificate)
    (directory / "alice.key").write_bytes(alice.key)
    (directory / "alice.crt").write_bytes(alice.certificate)
    ports = {protocol: free_port() for protocol in (*PROTOCOLS, "metrics")}
    quoted = PASSWORD.replace('"', '\\"')
    plain = f'{PLAIN_MODULE} required username="broker" password="b" user_broker="b" user_alice="{quoted}";'
    broker = OwnBroker(directory, zookeeper, **STEADY)
    secure = {
        "listeners": f"PLAINTEXT://127.0.0.1:{broker.port},"
        + ",".join(f"{protocol}://localhost:{ports[protocol]}" for protocol in PROTOCOLS),
        "security.inter.broker.protocol": "SASL_SSL",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain,
        "listener.name.sasl_ssl.plain.sasl.jaas.config": plain,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
        "ssl.client.auth": "required",
        "connection.failed.authentication.delay.ms": "20",
        "password.encoder.secret": "secret of passwords",
        "delegation.token.secret.key": "secret of tokens",
        "odradek.metrics.port": str(ports["metrics"]),
        "odradek.metrics.login": "prometheus:secret of metrics",
        "odradek.audit.dir": str(directory / "audit"),
    }
    broker.set(secure)
    with running(broker):
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            done = kafka_tools.run(
                "kafka-configs", "--bootstrap-server", broker.bootstrap, "--alter", "--entity-type", "users",
                "--entity-name", "alice", "--add-config", f"{mechanism}=[iterations=4096,password={PASSWORD}]",
            )  # fmt: skip
            assert done.status == 0, done.text
        yield Secured(broker, directory, ports, authority, alice)


WAYS = [
    ("SSL", ""),
    ("SASL_PLAINTEXT", "PLAIN"),
    ("SASL_PLAINTEXT", "SCRAM-SHA-256"),
    ("SASL_SSL", "PLAIN"),
    ("SASL_SSL", "SCRAM-SHA-512"),
]
every_way = pytest.mark.parametrize(("protocol", "mechanism"), WAYS)


@every_way
def test_librdkafka(secured: Secured, protocol: str, mechanism: str) -> None:
    topic = unused_name()
    secured.broker.create_topic(topic)
    settings = secured.librdkafka(protocol, mechanism)
    producer = Producer(settings)
    for n in range(100):
        producer.produce(topic, f"{n}-".encode() * 300)
    assert producer.flush(30) == 0
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = [message.value() for message in consumer.consume(100, 30)]
    consumer.close()
    assert found == [f"{n}-".encode() * 300 for n in range(100)]


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_is_told(secured: Secured, protocol: str, mechanism: str) -> None:
    errors: list[KafkaError] = []
    producer = Producer({**secured.librdkafka(protocol, mechanism, "wrong"), "error_cb": errors.append})
    eventually(lambda: producer.poll(0.1) >= 0 and KafkaError._AUTHENTICATION in {error.code() for error in errors})


@every_way
def test_kafka_python(secured: Secured, protocol: str, mechanism: str) -> None:
    topic = unused_name()
    secured.broker.create_topic(topic)
    settings = secured.python_settings(protocol, mechanism)
    producer = KafkaProducer(**settings)
    producer.send(topic, b"hello").get(30)
    producer.close()
    consumer = KafkaConsumer(topic, auto_offset_reset="earliest", consumer_timeout_ms=20_000, **settings)
    assert next(iter(consumer)).value == b"hello"
    consumer.close()


@every_way
def test_aiokafka(secured: Secured, protocol: str, mechanism: str) -> None:
    topic = unused_name()
    secured.broker.create_topic(topic)
    settings = secured.python_settings(protocol, mechanism)

    async def exchange() -> bytes | None:
        async with AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait(topic, b"hello")
        async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **settings) as consumer:
            return (await consumer.getone()).value

    assert asyncio.run(asyncio.wait_for(exchange(), 30)) == b"hello"


KAFKAJS_WAYS = [
    ("PLAINTEXT", "none"),
    ("SSL", "none"),
    *((protocol, name) for protocol in ("SASL_PLAINTEXT", "SASL_SSL") for name in ("PLAIN", *HASH_OF_MECHANISM)),
]


@pytest.mark.parametrize(("protocol", "mechanism"), KAFKAJS_WAYS)
def test_kafkajs(secured: Secured, protocol: str, mechanism: str) -> None:
    """With OAUTHBEARER, which test_oauth has, the nine ways that kafkajs's own tests connect by."""
    topic, files = unused_name(), ["ca.pem", "alice.key", "alice.crt"] if protocol == "SSL" else ["ca.pem"]
    secured.broker.create_topic(topic)
    address = secured.broker.bootstrap if protocol == "PLAINTEXT" else secured.bootstrap(protocol)
    paths = [secured.directory / name for name in files if not protocol.endswith("PLAINTEXT")]

    def found(password: str, *given: Path) -> dict[str, object]:
        with skipped_if_unobtainable():
            return dict(kafkajs_login(address, topic, mechanism.lower(), "alice", password, *given))

    assert found(PASSWORD, *paths) == {"error": 0, "seen": ["one", "two"]}
    if protocol == "SSL":
        assert "refused" in found(PASSWORD, paths[0]), "without a certificate"
    elif mechanism != "none":
        assert "uthentication failed" in str(found("wrong", *paths)["refused"])


@pytest.mark.parametrize(("protocol", "mechanism"), [("SSL", ""), ("SASL_SSL", "SCRAM-SHA-512")])
def test_kafka_s_own_tools(secured: Secured, kafka_tools: KafkaTools, protocol: str, mechanism: str) -> None:
    kafka_tools.exchange(secured.bootstrap(protocol), secured.file(protocol, mechanism), unused_name())


def test_kafka_s_own_tools_are_told_of_a_wrong_password(secured: Secured, kafka_tools: KafkaTools) -> None:
    file = secured.file("SASL_SSL", "SCRAM-SHA-512", "wrong")
    told = kafka_tools.run(
        "kafka-topics", "--bootstrap-server", secured.bootstrap("SASL_SSL"), "--command-config", file, "--list"
    )
    assert told.status != 0
    assert "invalid credentials with SASL mechanism SCRAM-SHA-512" in told.text


@every_way
def test_our_own_client(secured: Secured, protocol: str, mechanism: str) -> None:
    security = ClientSecurity(secured.settings(protocol, mechanism))
    with BrokerClient("localhost", secured.ports[protocol], security=security) as client:
        (broker,) = client.send(MetadataRequest(topics=[])).brokers
    assert (broker.host, broker.port) == ("localhost", secured.ports[protocol])
    if protocol != "SSL":
        refused = ClientSecurity(secured.settings(protocol, mechanism, "wrong"))
        with pytest.raises(ConnectionFailed, match="refuses to authenticate"):
            BrokerClient("localhost", secured.ports[protocol], security=refused)


@pytest.mark.parametrize(("protocol", "mechanism"), [("SSL", ""), ("SASL_SSL", "SCRAM-SHA-512")])
def test_our_own_commands(secured: Secured, protocol: str, mechanism: str) -> None:
    topic, bootstrap = unused_name(), ("--bootstrap-server", secured.bootstrap(protocol))
    config = ("--command-config", secured.file(protocol, mechanism))
    made = run_odradek("topics", "create", topic, *bootstrap, *config)
    assert made.returncode == 0, made.stderr
    load = ("--num-records", 300, "--record-size", 2000)
    written = run_odradek("perf", "produce", "--topic", topic, *load, *bootstrap, *config)
    assert written.returncode == 0, written.stderr
    read = run_odradek("consume", "--topic", topic, "--from-beginning", "--max-messages", 300, *bootstrap, *config)
    assert len(read.stdout.splitlines()) == 300, read.stderr
    assert topic in run_odradek("kafka-topics", "--list", *bootstrap, *config).stdout
    refused = run_odradek("topics", "list", "--bootstrap-server", secured.bootstrap("SASL_SSL"))
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr


def test_a_command_config_that_can_not_be_used(secured: Secured, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SASL_SSL\nsasl.mechanism=EXTERNAL\n")
    told = run_odradek("topics", "list", "--command-config", file)
    assert told.returncode in (1, 2)
    assert "sasl.mechanism: not supported" in told.stderr
    file.write_text("security.protocol=SSL\nssl.engine.factory.class=x\n")
    assert "ssl.engine.factory.class: not supported" in run_odradek("topics", "list", "--command-config", file).stderr


def test_our_own_client_refuses_a_broker_that_it_can_not_trust(secured: Secured) -> None:
    settings = secured.settings("SSL")
    with pytest.raises(ConnectionFailed, match=r"(?i)ip address mismatch"):
        BrokerClient("127.0.0.1", secured.ports["SSL"], security=ClientSecurity(settings))
    other = secured.directory / "other.pem"
    other.write_bytes(new_authority("another", 1).certificate)
    untrusting = ClientSecurity({**settings, "ssl.truststore.location": str(other)})
    with pytest.raises(ConnectionFailed, match="TLS with the broker"):
        BrokerClient("localhost", secured.ports["SSL"], security=untrusting)


def test_tls_for_a_plaintext_port_and_the_reverse(secured: Secured) -> None:
    context = secured.context()
    context.check_hostname = False
    with socket.create_connection(("127.0.0.1", secured.broker.port), 20) as plain, pytest.raises(OSError):
        context.wrap_socket(plain)
    with socket.create_connection(("localhost", secured.ports["SSL"]), 20) as tls:
        tls.sendall(struct.pack(">ihhihi", 14, 3, 1, 1, -1, 0))
        try:
            while tls.recv(1000):
                pass
        except ConnectionResetError:
            pass
    with secured.broker.client() as client:
        assert client.send(MetadataRequest(topics=[])).brokers
    with pytest.raises(ConnectionFailed, match="may speak TLS"):
        BrokerClient("localhost", secured.ports["SSL"])
    with pytest.raises(ConnectionFailed, match="may not speak TLS"):
        BrokerClient("127.0.0.1", secured.broker.port, security=ClientSecurity(secured.settings("SSL")))


def served_certificate(secured: Secured) -> x509.Certificate:
    with (
        socket.create_connection(("localhost", secured.ports["SSL"]), 20) as plain,
        secured.context().wrap_socket(plain, server_hostname="localhost") as tls,
    ):
        return x509.load_der_x509_certificate(tls.getpeercert(binary_form=True) or b"")


def test_stores_change_by_kafka_configs(secured: Secured, kafka_tools: KafkaTools, zookeeper: str) -> None:
    """Validated before they are stored, used at once, their passwords encrypted in ZooKeeper."""
    made = issue(secured.authority, "broker", ["localhost"], 2)
    (leaf,) = x509.load_pem_x509_certificates(made.certificate)
    key = serialization.load_pem_private_key(made.key, None)
    locked = serialization.BestAvailableEncryption(b"store password")
    store = secured.directory / "next.p12"
    store.write_bytes(pkcs12.serialize_key_and_certificates(b"next", key, leaf, None, locked))  # type: ignore[arg-type]

    def configure(*words: str) -> str:
        common = ("--bootstrap-server", secured.broker.bootstrap, "--entity-type", "brokers", "--entity-name", "0")
        return kafka_tools.run("kafka-configs", *common, "--alter", *words).text

    def stores(location: Path, password: str) -> str:
        values = {"location": location, "type": "PKCS12", "password": password}
        return ",".join(f"listener.name.ssl.ssl.keystore.{name}={value}" for name, value in values.items()) + (
            f",listener.name.ssl.ssl.key.password={password}"
        )

    before = served_certificate(secured)
    assert "Completed updating config" not in configure("--add-config", stores(store, "wrong"))
    assert served_certificate(secured) == before
    assert "Completed updating config" in configure("--add-config", stores(store, "store password"))
    assert served_certificate(secured) == leaf != before
    client = KazooClient(zookeeper)
    client.start(20)
    try:
        kept = json.loads(client.get(f"/{secured.directory.name}/config/brokers/0")[0])["config"]
    finally:
        client.stop()
        client.close()
    text = kept["listener.name.ssl.ssl.keystore.password"]
    assert "store password" not in text
    assert PasswordEncoder("secret of passwords").decode(text) == "store password"
    names = ("location", "type", "password")
    gone = ",".join([f"listener.name.ssl.ssl.keystore.{n}" for n in names] + ["listener.name.ssl.ssl.key.password"])
    assert "Completed updating config" in configure("--delete-config", gone)
    assert served_certificate(secured) == before
    refused = configure("--add-config", f"listener.name.sasl_ssl.ssl.keystore.location={store}")
    assert "is not the one between brokers" in refused
    assert "store password" not in secured.broker.log


def test_no_secret_is_in_the_log(secured: Secured) -> None:
    assert PASSWORD not in secured.broker.log
    assert "PRIVATE KEY" not in secured.broker.log


def test_secrets_are_nowhere(secured: Secured, kafka_tools: KafkaTools) -> None:
    """In no log, answer, metric, flight record or audit: whatever the broker writes or tells, but its own settings."""
    canaries = {PASSWORD, "secret of passwords", "secret of tokens", "secret of metrics", "PRIVATE KEY"}
    common = ("--bootstrap-server", secured.broker.bootstrap, "--describe", "--all")
    told = [
        kafka_tools.run("kafka-configs", *common, "--entity-type", "brokers", "--entity-name", "0").text,
        kafka_tools.run("kafka-configs", *common[:3], "--entity-type", "users", "--entity-name", "alice").text,
    ]
    request = urllib.request.Request(f"http://127.0.0.1:{secured.ports['metrics']}/metrics")
    request.add_header("Authorization", "Basic " + b64encode(b"prometheus:secret of metrics").decode())
    with urllib.request.urlopen(request, timeout=20) as answer:
        told.append(answer.read().decode())
    assert "password.encoder.secret=null sensitive=true" in told[0]
    assert "odradek_certificate_expiry_timestamp_seconds" in told[2]
    written = [path for path in secured.directory.rglob("*") if path.is_file() and path.parent != secured.directory]
    assert any(path.is_relative_to(secured.directory / "logs") for path in written)
    told += [secured.broker.log, *(path.read_bytes().decode("latin-1") for path in written)]
    assert [canary for canary in canaries for text in told if canary in text] == []
