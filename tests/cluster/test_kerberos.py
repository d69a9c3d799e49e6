"""GSSAPI: one broker in a Kerberos realm, which logs in to itself too, and the clients that people use."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer

from kafka_tools import KafkaTools
from kerberos_realm import KerberosRealm, kerberos_realm
from obtaining import skipped_if_unobtainable
from odradek.base.config.properties import format_properties
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.client.client_security import ClientSecurity
from odradek.local.zookeeper_server import free_port
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.security.jaas import KERBEROS_MODULE
from waiting import eventually

from .conftest import unused_name
from .own_broker import STEADY, OwnBroker, run_odradek, running

SERVICE = "kafka/localhost"
PRINCIPALS = (SERVICE, "alice", "App.orders/localhost", "other/localhost")


@dataclass
class Kerberized:
    broker: OwnBroker
    realm: KerberosRealm
    keytabs: dict[str, Path]
    directory: Path
    port: int

    @property
    def bootstrap(self) -> str:
        return f"localhost:{self.port}"

    def settings(self, user: str = "alice", keytab: Path | None = None) -> dict[str, str]:
        """Settings of a client, as Kafka's tools take them from a file."""
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.jaas.config": f"{KERBEROS_MODULE} required useKeyTab=true storeKey=true "
            f'keyTab="{keytab or self.keytabs[user]}" principal="{user}@{self.realm.name}";',
        }

    def file(self, user: str = "alice") -> Path:
        path = self.directory / f"{user.replace('/', '-')}.properties"
        path.write_text(format_properties(self.settings(user)))
        return path

    def creators(self) -> set[str]:
        """Principals that created topics, by the audit log."""
        lines = (self.directory / "audit" / "odradek-audit.log").read_text().splitlines()
        return {entry["principal"] for entry in map(json.loads, lines) if entry["request"] == "CREATE_TOPICS"}

    def create_topic(self, settings: dict[str, str]) -> str:
        topic = unused_name()
        with BrokerClient("localhost", self.port, security=ClientSecurity(settings)) as client:
            wanted = CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
            (answer,) = client.send(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000)).topics
        assert answer.error_code == 0, answer
        return topic


@pytest.fixture(scope="module")
def kerberized(zookeeper: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kerberized]:
    directory, port = tmp_path_factory.mktemp("kerberos"), free_port()
    with skipped_if_unobtainable(), kerberos_realm(directory) as realm:
        keytabs = {name: realm.keytab(name) for name in (SERVICE, "alice", "App.orders/localhost", "other/localhost")}
        broker = OwnBroker(directory, zookeeper, **STEADY)
        broker.set(
            {
                "listeners": f"PLAINTEXT://127.0.0.1:{broker.port},KERBEROS://localhost:{port}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,KERBEROS:SASL_PLAINTEXT",
                "inter.broker.listener.name": "KERBEROS",
                "sasl.kerberos.service.name": "kafka",
                "sasl.kerberos.principal.to.local.rules": r"RULE:[2:$1](App\..*)s/App\.(.*)/$1/g,DEFAULT",
                "listener.name.kerberos.gssapi.sasl.jaas.config": f"{KERBEROS_MODULE} required useKeyTab=true "
                f'storeKey=true keyTab="{keytabs[SERVICE]}" principal="{SERVICE}@{realm.name}";',
                "connection.failed.authentication.delay.ms": "20",
                "odradek.audit.dir": str(directory / "audit"),
            }
        )
        with running(broker):
            yield Kerberized(broker, realm, keytabs, directory, port)


def test_kafka_s_own_tools(
    kerberized: Kerberized, kafka_lib: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a JVM of their own, which knows the realm."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={kerberized.realm.config}")
    with KafkaTools(kafka_lib, tmp_path) as tools:
        tools.exchange(kerberized.bootstrap, kerberized.file(), unused_name())
    eventually(lambda: "User:alice" in kerberized.creators())


def test_kafka_python(kerberized: Kerberized, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = kerberized.realm.ticket_cache("alice", kerberized.keytabs["alice"])
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{cache}")
    topic = kerberized.create_topic(kerberized.settings())
    settings = {
        "bootstrap_servers": kerberized.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_service_name": "kafka",
        "sasl_kerberos_domain_name": "localhost",
    }
    producer = KafkaProducer(**settings)
    producer.send(topic, b"hello").get(30)
    producer.close()
    consumer = KafkaConsumer(topic, auto_offset_reset="earliest", consumer_timeout_ms=20_000, **settings)
    assert next(iter(consumer)).value == b"hello"
    consumer.close()


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is absent (apt-get install kcat)")
def test_kcat(kerberized: Kerberized) -> None:
    """librdkafka runs kinit itself."""
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal": f"alice@{kerberized.realm.name}",
        "sasl.kerberos.keytab": str(kerberized.keytabs["alice"]),
    }
    options = [word for pair in settings.items() for word in ("-X", "=".join(pair))]
    command = ["kcat", "-b", kerberized.bootstrap, *options, "-L", "-m", "20"]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if "No worthy mechs found" in listed.stderr:
        pytest.skip("Cyrus SASL has no GSSAPI here (apt-get install libsasl2-modules-gssapi-mit)")
    assert listed.returncode == 0, listed.stderr
    assert kerberized.bootstrap in listed.stdout


def test_our_own_commands_and_clients(kerberized: Kerberized) -> None:
    cache = kerberized.realm.ticket_cache("alice", kerberized.keytabs["alice"])
    cached = {
        **kerberized.settings(),
        "sasl.jaas.config": f'{KERBEROS_MODULE} required useTicketCache=true ticketCache="{cache}";',
    }
    topic = kerberized.create_topic(cached)
    config = ("--bootstrap-server", kerberized.bootstrap, "--command-config", kerberized.file("App.orders/localhost"))
    assert topic in run_odradek("topics", "list", *config).stdout
    assert run_odradek("topics", "create", unused_name(), *config).returncode == 0
    eventually(lambda: {"User:alice", "User:orders"} <= kerberized.creators())


def refused(kerberized: Kerberized, settings: dict[str, str]) -> str:
    with pytest.raises(ConnectionFailed, match="refuses to authenticate") as failure:
        BrokerClient("localhost", kerberized.port, security=ClientSecurity(settings))
    return str(failure.value)


def test_who_is_refused(kerberized: Kerberized) -> None:
    no_key = kerberized.settings("alice", kerberized.keytabs["other/localhost"])
    assert "no Kerberos credentials for alice@" in refused(kerberized, no_key)
    other_service = {**kerberized.settings(), "sasl.kerberos.service.name": "other"}
    refused(kerberized, other_service)
    assert "Cannot decrypt ticket for other/localhost" in kerberized.broker.log
    assert str(kerberized.keytabs["alice"]) not in kerberized.broker.log
    unknown = {**kerberized.settings(), "sasl.kerberos.service.name": "nobody"}
    assert "not found in Kerberos database" in refused(kerberized, unknown)
