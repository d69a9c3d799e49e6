"""Apache Kafka 3.9 and Odradek in one cluster, with SASL_SSL, SCRAM between brokers and ACLs on all of them.

Brokers of either kind log in to each other and follow each other; users and rights that are given at one kind hold at
the other; a broker of each kind dies, and nothing that was acknowledged is lost.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka import TopicPartition as Position
from kazoo.client import KazooClient

from apache_kafka import broker_command
from chaos.clients import await_condition
from kafka_tools import KafkaTools
from odradek.base.config.properties import format_properties
from odradek.client.broker_client import ConnectionFailed
from odradek.client.client_security import AuthenticationRefused, ClientSecurity
from odradek.client.cluster_client import ClusterClient
from odradek.local.server_process import ServerProcess, odradek_command, serves
from odradek.local.zookeeper_server import free_port
from odradek.security.certificates import issue, new_authority
from odradek.security.jaas import SCRAM_MODULE

KAFKA, OURS, OURS_TOO = 0, 1, 2
PASSWORDS = {"broker": "b-secret", "alice": "a-secret", "bob": "o-secret"}
PATIENCE_S = 90


@dataclass
class Mixed:
    directory: Path
    zookeeper: str
    tools: KafkaTools
    ports: list[int]
    brokers: list[ServerProcess] = field(default_factory=list)

    def settings(self, user: str) -> dict[str, str]:
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{SCRAM_MODULE} required username="{user}" password="{PASSWORDS[user]}";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.directory / "ca.pem"),
        }

    def file(self, user: str) -> Path:
        path = self.directory / f"{user}.properties"
        path.write_text(format_properties(self.settings(user)))
        return path

    def address(self, broker: int) -> str:
        return f"localhost:{self.ports[broker]}"

    def librdkafka(self, user: str) -> dict[str, str | int]:
        return {
            "bootstrap.servers": ",".join(map(self.address, range(3))),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": PASSWORDS[user],
            "ssl.ca.location": str(self.directory / "ca.pem"),
            "log_level": 0,
        }

    def client(self, broker: int) -> ClusterClient:
        return ClusterClient(self.address(broker), security=ClientSecurity(self.settings("broker")))

    def start(self, broker: int) -> None:
        security = ClientSecurity(self.settings("broker"))
        self.brokers[broker].start()
        self.brokers[broker].await_serving(lambda: serves(("localhost", self.ports[broker]), security), PATIENCE_S, 0.2)

    def isr_sizes(self) -> set[int]:
        try:
            with self.client(OURS_TOO) as client:
                return {len(state.isr) for state in client.topic("mixed").partitions}
        except ConnectionFailed:
            return set()

    def run(self, tool: str, *words: object) -> str:
        done = self.tools.run(tool, *words)
        assert done.status == 0, done.text
        return done.text

    def accepts_token(self, token_id: str, secret: str, broker: int) -> bool:
        """Whether this broker lets the token's owner in."""
        login = f'{SCRAM_MODULE} required username="{token_id}" password="{secret}" tokenauth="true";'
        settings = ClientSecurity({**self.settings("alice"), "sasl.jaas.config": login})
        try:
            return serves(("localhost", self.ports[broker]), settings)
        except AuthenticationRefused:
            return False


@pytest.fixture
def mixed(tmp_path: Path, zookeeper: str, kafka_lib: Path, kafka_tools: KafkaTools) -> Iterator[Mixed]:
    authority = new_authority("test CA", 2)
    host = issue(authority, "broker", ["localhost"], 2)
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    (tmp_path / "broker.pem").write_bytes(host.key + host.certificate)
    cluster = Mixed(tmp_path, f"{zookeeper}/{tmp_path.name}", kafka_tools, [free_port() for _ in range(3)])
    tree = KazooClient(zookeeper)
    tree.start()
    tree.ensure_path(f"/{tmp_path.name}")
    tree.stop()
    for broker, port in enumerate(cluster.ports):
        own = tmp_path / f"broker-{broker}"
        own.mkdir()
        properties = {
            "broker.id": str(broker),
            "listeners": f"SASL_SSL://localhost:{port}",
            "log.dirs": str(own / "logs"),
            "zookeeper.connect": cluster.zookeeper,
            "security.inter.broker.protocol": "SASL_SSL",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": cluster.settings("broker")["sasl.jaas.config"],
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(tmp_path / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(tmp_path / "ca.pem"),
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:broker",
            "delegation.token.secret.key": "key of tokens",
            "min.insync.replicas": "2",
            "offsets.topic.replication.factor": "3",
            "offsets.topic.num.partitions": "3",
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
        }
        (own / "server.properties").write_text(format_properties(properties))
        launch = broker_command(kafka_lib) if broker == KAFKA else odradek_command
        name, log_file = f"broker {broker}", own / "broker.log"
        cluster.brokers.append(ServerProcess(name, own / "server.properties", log_file, launch))
    with ExitStack() as started:
        for broker in cluster.brokers:
            started.callback(broker.kill)
        yield cluster


def scram(user: str) -> tuple[str, ...]:
    config = f"SCRAM-SHA-512=[iterations=4096,password={PASSWORDS[user]}]"
    return "--alter", "--entity-type", "users", "--entity-name", user, "--add-config", config


class Numbers:
    """Numbers written with acks=all as alice, and the errors of those that were not."""

    def __init__(self, mixed: Mixed) -> None:
        self._producer = Producer({**mixed.librdkafka("alice"), "acks": "all", "enable.idempotence": True})
        self.acknowledged: list[int] = []
        self.errors: list[KafkaError] = []

    def write(self, count: int) -> None:
        first = len(self.acknowledged)
        for n in range(first, first + count):
            self._producer.produce("mixed", str(n).encode(), partition=n % 3, on_delivery=self._told)
            self._producer.poll(0)
        assert self._producer.flush(PATIENCE_S) == 0
        assert self.errors == []

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged.append(int(message.value() or b""))
        else:
            self.errors.append(error)


def refusal(mixed: Mixed, user: str, partition: int) -> int:
    """The error of one record."""
    codes: list[int] = []
    producer = Producer(mixed.librdkafka(user))
    producer.produce(
        "mixed",
        b"x",
        partition=partition,
        on_delivery=lambda error, message: codes.append(error.code() if error else 0),
    )
    producer.flush(PATIENCE_S)
    return codes[0]


def written(mixed: Mixed) -> list[int]:
    settings = {"group.id": "readers", "auto.offset.reset": "earliest"}
    consumer = Consumer({**mixed.librdkafka("alice"), **settings})
    consumer.assign([Position("mixed", partition, 0) for partition in range(3)])
    found: list[int] = []
    while messages := consumer.consume(1000, 10):
        found += [int(message.value() or b"") for message in messages if message.error() is None]
    consumer.close()
    return sorted(found)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_users_rights_and_records_of_either_kind(mixed: Mixed) -> None:
    mixed.run("kafka-configs", "--zookeeper", mixed.zookeeper, *scram("broker"))
    for broker in (KAFKA, OURS, OURS_TOO):
        mixed.start(broker)
    at_kafka, at_ours = (("--bootstrap-server", mixed.address(broker)) for broker in (KAFKA, OURS))
    admin = ("--command-config", mixed.file("broker"))
    mixed.run("kafka-configs", *at_ours, *admin, *scram("alice"))
    mixed.run("kafka-configs", *at_kafka, *admin, *scram("bob"))
    mixed.run("kafka-topics", *at_kafka, *admin, "--create", "--topic", "mixed", "--replica-assignment",
              "0:1:2,1:2:0,2:0:1")  # fmt: skip
    allow = ("--add", "--allow-principal", "User:alice", "--topic", "mixed")
    mixed.run("kafka.admin.AclCommand", *at_kafka, *admin, *allow, "--producer")
    mixed.run("kafka.admin.AclCommand", *at_ours, *admin, *allow, "--consumer", "--group", "readers")
    assert await_condition(lambda: mixed.isr_sizes() == {3}, PATIENCE_S)

    for made_at in (at_kafka, at_ours):
        command = (*made_at, "--command-config", mixed.file("alice"), "--create", "--max-life-time-period", "-1")
        created = mixed.run("org.apache.kafka.tools.DelegationTokenCommand", *command)
        token_id, secret = re.findall(r"(?m)^(\S+)\s+(\S+==)\s+User:alice", created)[0]
        for broker in (KAFKA, OURS):
            assert await_condition(partial(mixed.accepts_token, token_id, secret, broker), PATIENCE_S)

    numbers = Numbers(mixed)
    numbers.write(600)
    for partition in range(3):
        assert refusal(mixed, "bob", partition) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    for broker in (KAFKA, OURS):  # each kind leads what the other led
        mixed.brokers[broker].kill()
        numbers.write(300)
        mixed.start(broker)
        assert await_condition(lambda: mixed.isr_sizes() == {3}, PATIENCE_S)
        numbers.write(300)
    assert written(mixed) == sorted(numbers.acknowledged) == list(range(1800))
    mixed.run("kafka.admin.AclCommand", *at_ours, *admin, "--remove", "--force", "--allow-principal", "User:alice",
              "--producer", "--topic", "mixed")  # fmt: skip
    assert await_condition(
        lambda: (
            {refusal(mixed, "alice", partition) for partition in range(3)} == {KafkaError.TOPIC_AUTHORIZATION_FAILED}
        ),
        PATIENCE_S,
    )
