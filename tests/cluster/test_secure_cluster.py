"""Clusters of `odradek up --secure`: TLS everywhere, users, ACLs that deny by default."""

import itertools
import json
import shutil
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from kafka_tools import KafkaTools
from odradek.base.config.properties import format_properties, parse_properties
from odradek.base.errors import FatalError
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.client.client_security import ClientSecurity
from odradek.local.cluster_processes import LocalCluster
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.security.certificates import issue, new_authority
from odradek.security.jaas import PLAIN_MODULE
from odradek.testing import OdradekCluster

from .conftest import unused_name
from .own_broker import run_odradek


def librdkafka(file: Path) -> dict[str, str | int]:
    """Settings of kcat.conf, which librdkafka's clients take as they are."""
    pairs = (line.partition("=") for line in file.read_text().splitlines())
    return {**{key: value for key, _, value in pairs}, "log_level": 0}


def test_kafka_s_tools_take_the_administrator_s_file(
    odradek_secure_cluster: OdradekCluster, kafka_tools: KafkaTools
) -> None:
    cluster, topic = odradek_secure_cluster, f"app-{unused_name()}"
    common = ("--bootstrap-server", cluster.bootstrap_servers)
    made = kafka_tools.run(
        "kafka-topics", *common, "--command-config", cluster.client_properties, "--create", "--topic", topic
    )
    assert made.status == 0, made.text
    sent = kafka_tools.run(
        "kafka-console-producer", *common, "--producer.config", cluster.app_properties, "--topic", topic, stdin="one\n"
    )
    assert sent.status == 0, sent.text
    read = kafka_tools.run(
        "kafka-console-consumer", *common, "--consumer.config", cluster.app_properties, "--topic", topic,
        "--group", "app-readers", "--from-beginning", "--max-messages", "1", "--timeout-ms", "20000",
    )  # fmt: skip
    assert read.output.split() == ["one"], read.text


def test_the_application_may_do_what_begins_with_its_name(odradek_secure_cluster: OdradekCluster) -> None:
    cluster, topic = odradek_secure_cluster, unused_name()
    config = ("--bootstrap-server", cluster.bootstrap_servers, "--command-config")
    assert run_odradek("topics", "create", topic, *config, cluster.client_properties).returncode == 0
    assert run_odradek("topics", "create", f"app-{topic}", *config, cluster.app_properties).returncode == 0
    refused = run_odradek("topics", "create", f"other-{topic}", *config, cluster.app_properties)
    assert "AUTHORIZATION_FAILED" in refused.stderr
    failures: list[KafkaError | None] = []
    producer = Producer(librdkafka(cluster.data_dir / "kcat.conf"))
    for name in (topic, f"app-{topic}"):
        producer.produce(name, b"x", on_delivery=lambda error, message: failures.append(error))
        producer.flush(20)
    assert [failure.code() if failure else 0 for failure in failures] == [KafkaError.TOPIC_AUTHORIZATION_FAILED, 0]


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is absent (apt-get install kcat)")
def test_kcat_takes_its_file(odradek_secure_cluster: OdradekCluster) -> None:
    """Debian's librdkafka is older than 2.6.1 and sends the client's nonce twice: brokers of Kafka 3.9 allow it."""
    command = ["kcat", "-F", str(odradek_secure_cluster.data_dir / "kcat.conf"), "-L", "-m", "20"]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert listed.returncode == 0, listed.stderr
    assert odradek_secure_cluster.bootstrap_servers.split(",")[0] in listed.stdout


def test_the_cluster_s_health_tells_when_certificates_end(odradek_secure_cluster: OdradekCluster) -> None:
    cluster = odradek_secure_cluster
    config = ("--bootstrap-server", cluster.bootstrap_servers, "--command-config", cluster.client_properties)
    (broker,) = json.loads(run_odradek("cluster", *config, "--format", "json").stdout)["brokers"]
    listed = run_odradek("certs", "list", "--data", cluster.data_dir, "--format", "json").stdout
    ends = {row["certificate"]: row["expires"] for row in json.loads(listed)}
    assert broker["certificate_ends"][:16].replace("T", " ") in ends.values()
    assert f"{broker['certificate_days_left']} days" in run_odradek("cluster", *config).stdout


def test_secrets_are_readable_by_their_owner_alone(odradek_secure_cluster: OdradekCluster) -> None:
    data = odradek_secure_cluster.data_dir
    files = [data / "client.properties", data / "app.properties", data / "kcat.conf", *(data / "security").iterdir()]
    assert len(files) == 7
    readable = {file.name for file in files if stat.S_IMODE(file.stat().st_mode) & 0o077}
    assert readable == {"ca.pem"}


def test_no_way_in_without_a_certificate_or_a_password(odradek_secure_cluster: OdradekCluster) -> None:
    cluster = odradek_secure_cluster
    port = int(cluster.bootstrap_servers.rpartition(":")[2])
    for each in (port, port + 200):
        with pytest.raises(ConnectionFailed):
            BrokerClient("127.0.0.1", each)
    trust = {
        key: value
        for key, value in parse_properties(cluster.client_properties.read_text()).items()
        if key.startswith("ssl.")
    }
    anonymous = ClientSecurity({**trust, "security.protocol": "SSL"})
    for each in (port, port + 200):
        with pytest.raises(ConnectionFailed), BrokerClient("127.0.0.1", each, security=anonymous) as client:
            client.send(MetadataRequest(topics=[]))


def test_a_secure_cluster_stays_so_and_another_one_does_not_become_it(
    odradek_secure_cluster: OdradekCluster, tmp_path: Path
) -> None:
    with pytest.raises(FatalError, match="no laboratory"):
        LocalCluster(odradek_secure_cluster.data_dir).start(None, None, {}, lab=True)
    plain = tmp_path / "broker-0"
    plain.mkdir()
    (plain / "server.properties").write_text("listeners=PLAINTEXT://127.0.0.1:1\n")
    with pytest.raises(FatalError, match="without --secure"):
        LocalCluster(tmp_path).start(None, None, {}, secure=True)


@pytest.fixture
def three(tmp_path: Path) -> Iterator[OdradekCluster]:
    cluster = OdradekCluster(tmp_path / "three", brokers=3, secure=True)
    try:
        cluster.start_all()
        yield cluster
    finally:
        cluster.stop_all()


def test_three_brokers_replicate_over_mutual_tls_and_survive_a_crash(three: OdradekCluster) -> None:
    config = ("--bootstrap-server", three.bootstrap_servers, "--command-config", three.client_properties)
    made = run_odradek("topics", "create", "app-t", "--partitions", 3, "--replication-factor", 3, *config)
    assert made.returncode == 0, made.stderr
    settings = librdkafka(three.data_dir / "kcat.conf")
    producer = Producer({**settings, "acks": "all"})
    for n in range(30):
        producer.produce("app-t", str(n).encode(), partition=n % 3)
    assert producer.flush(30) == 0
    renewed = run_odradek("certs", "renew", "--broker", 1, "--data", three.data_dir)
    assert renewed.returncode == 0, renewed.stderr
    three.kill(0)
    for n in range(30, 60):
        producer.produce("app-t", str(n).encode(), partition=n % 3)
    assert producer.flush(60) == 0
    three.start(0)
    consumer = Consumer({**settings, "group.id": "app-readers"})
    consumer.assign([TopicPartition("app-t", partition, 0) for partition in range(3)])
    found = sorted(int(message.value() or b"") for message in consumer.consume(60, 30))
    consumer.close()
    assert found == list(range(60))


class _Load:
    """Writes numbers with acks=all until it is stopped; knows which were acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: list[int] = []
        self.errors: list[KafkaError] = []
        settings = {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "log_level": 0}
        self._producer = Producer(settings)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(60) == 0

    def _run(self) -> None:
        for n in itertools.count():
            self._producer.produce("t", str(n).encode(), partition=n % 3, on_delivery=self._told)
            self._producer.poll(0.002)
            if self._stopping.is_set():
                return

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged.append(int(message.value() or b""))
        else:
            self.errors.append(error)


def _restart_each(cluster: OdradekCluster, change: Callable[[dict[str, str]], None]) -> None:
    for broker_id in range(3):
        file = cluster.data_dir / f"broker-{broker_id}" / "server.properties"
        properties = parse_properties(file.read_text())
        change(properties)
        cluster.stop(broker_id)
        file.write_text(format_properties(properties))
        cluster.start(broker_id)


@pytest.mark.soak
def test_from_plaintext_to_sasl_ssl_by_rolling_restarts_under_load(tmp_path: Path) -> None:
    authority = new_authority("test CA", 2)
    host = issue(authority, "broker", ["127.0.0.1"], 2)
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    (tmp_path / "broker.pem").write_bytes(host.key + host.certificate)
    module = f'{PLAIN_MODULE} required username="b" password="x" user_b="x" user_alice="y";'

    def with_another_listener(properties: dict[str, str]) -> None:
        port = int(properties["listeners"].rpartition(":")[2])
        properties |= {
            "listeners": f"{properties['listeners']},SASL_SSL://127.0.0.1:{port + 300}",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(tmp_path / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(tmp_path / "ca.pem"),
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": module,
        }

    cluster = OdradekCluster(tmp_path / "rolling", brokers=3)
    try:
        cluster.start_all()
        bootstrap = cluster.bootstrap_servers
        made = run_odradek(
            "topics", "create", "t", "--partitions", 3, "--replication-factor", 3, "--bootstrap-server", bootstrap
        )
        assert made.returncode == 0, made.stderr
        load = _Load(bootstrap)
        try:
            _restart_each(cluster, with_another_listener)
            _restart_each(cluster, lambda properties: properties.update({"security.inter.broker.protocol": "SASL_SSL"}))
        finally:
            load.stop()
        port = int(bootstrap.rpartition(":")[2]) + 300
        consumer = Consumer(
            {
                "bootstrap.servers": f"127.0.0.1:{port}", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN",
                "sasl.username": "alice", "sasl.password": "y", "ssl.ca.location": str(tmp_path / "ca.pem"),
                "group.id": "g", "log_level": 0,
            }
        )  # fmt: skip
        consumer.assign([TopicPartition("t", partition, 0) for partition in range(3)])
        found: list[int] = []
        while len(found) < len(load.acknowledged) and (messages := consumer.consume(1000, 20)):
            found += [int(message.value() or b"") for message in messages]
        consumer.close()
        assert load.errors == []
        assert sorted(found) == sorted(load.acknowledged)
    finally:
        cluster.stop_all()
