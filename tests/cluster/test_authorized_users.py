"""Users with passwords, rights and tokens, administered and tried with Kafka's own tools and librdkafka."""

import json
import re
import sys
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from hmac import digest
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from kafka_tools import KafkaTools
from odradek.apps.cli import main
from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient
from odradek.client.client_security import ClientSecurity
from odradek.client.command_config import COMMAND_CONFIG_VARIABLE
from odradek.local.zookeeper_server import free_port
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from waiting import eventually

from .conftest import JavaTool
from .own_broker import STEADY, OwnBroker, batch_of, produce, produce_request, read_all, running

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
CANARY = "c4n4ry-Pa55word"
TOKEN_KEY = "c4n4ry-t0ken-key"
SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "security.inter.broker.protocol": "PLAINTEXT",
    "delegation.token.secret.key": TOKEN_KEY,
    "connection.failed.authentication.delay.ms": "20",
}


@dataclass
class Cluster:
    broker: OwnBroker
    directory: Path
    port: int

    def file(self, user: str, password: str, *, is_token: bool = False) -> Path:
        """Properties with which a client logs in."""
        more = ' tokenauth="true"' if is_token else ""
        path = self.directory / f"{user}-{is_token}.properties"
        path.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
            f'sasl.jaas.config={SCRAM} required username="{user}" password="{password}"{more};\n'
        )
        return path

    def secured(self, path: Path) -> tuple[str, ...]:
        return "--bootstrap-server", f"127.0.0.1:{self.port}", "--command-config", str(path)

    def produce(self, user: str, topic: str) -> KafkaError | None:
        """As librdkafka does; the error of the record."""
        errors: list[KafkaError | None] = []
        producer = Producer(
            {
                "bootstrap.servers": f"127.0.0.1:{self.port}",
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.username": user,
                "sasl.password": CANARY,
                "log_level": 0,
            }
        )
        try:
            producer.produce(topic, b"v", on_delivery=lambda error, message: errors.append(error))
            producer.flush(30)
        except KafkaException as error:
            return error.args[0]
        assert errors, "neither written nor refused"
        return errors[0]


@pytest.fixture(scope="module")
def cluster(zookeeper: str, tmp_path_factory: pytest.TempPathFactory, kafka_tools: KafkaTools) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("users")
    port = free_port()
    broker = OwnBroker(directory, zookeeper, **STEADY)
    broker.set({"listeners": f"PLAINTEXT://127.0.0.1:{broker.port},SASL_PLAINTEXT://127.0.0.1:{port}", **SETTINGS})
    with running(broker):
        for user in ("alice", "bob"):
            done = kafka_tools.run(
                "kafka-configs", "--bootstrap-server", broker.bootstrap, "--alter", "--entity-type", "users",
                "--entity-name", user, "--add-config", f"SCRAM-SHA-256=[iterations=4096,password={CANARY}]",
            )  # fmt: skip
            assert done.status == 0, done.text
        broker.create_topic("orders")
        yield Cluster(broker, directory, port)


def acls_in(printed: str) -> set[tuple[str, str]]:
    """Pattern and entry of each ACL that kafka-acls prints."""
    found = set()
    pattern = ""
    for line in printed.splitlines():
        if match := re.search(r"for resource `(.*)`", line):
            pattern = match[1]
        elif "(principal=" in line:
            found.add((pattern, line.strip()))
    return found


def test_rights_are_given_by_kafka_acls_and_obeyed(
    cluster: Cluster, java_tool: JavaTool, capfd: pytest.CaptureFixture[str]
) -> None:
    bootstrap = ("--bootstrap-server", cluster.broker.bootstrap)
    refused = cluster.produce("alice", "orders")
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    java_tool(
        "kafka.admin.AclCommand", *bootstrap, "--add", "--allow-principal", "User:alice", "--producer",
        "--topic", "orders",
    )  # fmt: skip
    assert cluster.produce("alice", "orders") is None
    refused = cluster.produce("bob", "orders")
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    theirs = java_tool("kafka.admin.AclCommand", *bootstrap, "--list")
    assert len(acls_in(theirs)) == 3
    capfd.readouterr()
    assert main.run(["kafka-acls", *bootstrap, "--list"]) == 0
    assert acls_in(capfd.readouterr().out) == acls_in(theirs)
    log = cluster.broker.log
    denied = "User:bob is Denied Operation = Describe from host = 127.0.0.1 on resource = Topic:LITERAL:orders"
    assert f"Principal = {denied} for request = METADATA with resourceRefCount = 1" in log
    eventually(lambda: {("denied", "METADATA"), ("change", "CREATE_ACLS")} <= audited(cluster))


def test_cve_2018_17196_a_transaction_s_batches_need_the_right_to_its_id(cluster: Cluster) -> None:
    """Batches decide, not the request: a transactional batch in a request that names no transaction is refused too."""
    security = ClientSecurity.from_file(cluster.file("alice", CANARY))
    with cluster.broker.client() as client:
        orders = AclCreation(
            resource_type=2, resource_name="orders", resource_pattern_type=3, principal="User:alice", host="*",
            operation=4, permission_type=3,
        )  # fmt: skip
        assert client.send(CreateAclsRequest(creations=[orders])).results[0].error_code == 0
        before = len(read_all(client, "orders"))
        with BrokerClient("127.0.0.1", cluster.port, security=security) as alice:
            eventually(lambda: produce(alice, "orders", batch_of(b"x")).error_code == 0)
            for transactional_id in (None, "payments"):
                batch = batch_of(b"x", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
                request = produce_request("orders", batch)
                request.transactional_id = transactional_id
                (answer,) = alice.send(request).responses[0].partition_responses
                assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert len(read_all(client, "orders")) == before + 1


def audited(cluster: Cluster) -> set[tuple[str, str]]:
    files = (cluster.directory / "logs").glob("odradek-audit*.log")
    lines = [line for file in files for line in file.read_text().splitlines()]
    return {(entry["event"], entry["request"]) for entry in map(json.loads, lines)}


def test_a_quota_is_for_the_user_that_logged_in(cluster: Cluster, java_tool: JavaTool) -> None:
    java_tool(
        "kafka.admin.ConfigCommand", "--bootstrap-server", cluster.broker.bootstrap, "--alter", "--entity-type",
        "users", "--entity-name", "alice", "--add-config", "producer_byte_rate=1000",
    )  # fmt: skip
    rights = [
        AclCreation(
            resource_type=2, resource_name="limited", resource_pattern_type=3, principal=f"User:{user}", host="*",
            operation=4, permission_type=3,
        )
        for user in ("alice", "bob")
    ]  # fmt: skip
    cluster.broker.create_topic("limited")
    with cluster.broker.client() as client:
        assert {result.error_code for result in client.send(CreateAclsRequest(creations=rights)).results} == {0}
    alice, bob = (
        BrokerClient("127.0.0.1", cluster.port, security=ClientSecurity.from_file(cluster.file(user, CANARY)))
        for user in ("alice", "bob")
    )
    with alice, bob:
        request = produce_request("limited", batch_of(b"x" * 5000))
        eventually(lambda: alice.send(request).throttle_time_ms > 0)
        assert bob.send(request).throttle_time_ms == 0
    java_tool(
        "kafka.admin.ConfigCommand", "--bootstrap-server", cluster.broker.bootstrap, "--alter", "--entity-type",
        "users", "--entity-name", "alice", "--delete-config", "producer_byte_rate",
    )  # fmt: skip


def test_a_token_logs_in_as_its_owner_until_it_is_ended(
    cluster: Cluster, java_tool: JavaTool, kafka_tools: KafkaTools
) -> None:
    tokens, topics = "org.apache.kafka.tools.DelegationTokenCommand", "kafka-topics"
    alice = cluster.secured(cluster.file("alice", CANARY))
    java_tool(
        "kafka.admin.AclCommand", "--bootstrap-server", cluster.broker.bootstrap, "--add", "--allow-principal",
        "User:alice", "--operation", "Describe", "--topic", "orders",
    )  # fmt: skip
    created = java_tool(tokens, *alice, "--create", "--max-life-time-period", "-1")
    token_id, hmac = re.findall(r"(?m)^(\S+)\s+(\S+==)\s+User:alice", created)[0]
    made_as_by_kafka = digest(TOKEN_KEY.encode(), token_id.encode(), "sha512")
    assert b64decode(hmac) == made_as_by_kafka, "known to nobody without the brokers' key"
    assert token_id in java_tool(tokens, *alice, "--describe", "--owner-principal", "User:alice")
    by_token = cluster.secured(cluster.file(token_id, hmac, is_token=True))
    assert "orders" in java_tool(topics, *by_token, "--list")
    begotten = kafka_tools.run(tokens, *by_token, "--create", "--max-life-time-period", "-1")
    assert begotten.status != 0
    assert "DelegationTokenDisabledException" in begotten.text or "not allowed" in begotten.text
    java_tool(tokens, *alice, "--renew", "--renew-time-period", "-1", "--hmac", hmac)
    bob = cluster.secured(cluster.file("bob", CANARY))
    assert token_id not in java_tool(tokens, *bob, "--describe")
    java_tool(tokens, *alice, "--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    assert kafka_tools.run(topics, *by_token, "--list").status != 0
    unauthenticated = kafka_tools.run(
        tokens, "--bootstrap-server", cluster.broker.bootstrap, "--command-config", _empty(cluster), "--create",
        "--max-life-time-period", "-1",
    )  # fmt: skip
    assert unauthenticated.status != 0
    assert hmac not in cluster.broker.log


def _empty(cluster: Cluster) -> Path:
    path = cluster.directory / "empty.properties"
    path.touch()
    return path


def test_our_own_commands(
    cluster: Cluster, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run(*words: str) -> str:
        capfd.readouterr()
        code = main.run([*words, "--bootstrap-server", cluster.broker.bootstrap])
        output = capfd.readouterr()
        assert code == 0, output.err
        return output.out

    given = tmp_path / "password"
    given.write_text(f"{CANARY}\n")
    with given.open() as typed:
        monkeypatch.setattr(sys, "stdin", typed)
        run("users", "set", "carol", "--mechanism", "SCRAM-SHA-256")
    assert "carol" in run("users", "list")
    run(
        "acls",
        "add",
        "--principal",
        "User:carol",
        "--operation",
        "Write",
        "--operation",
        "Describe",
        "--topic",
        "orders",
    )
    assert cluster.produce("carol", "orders") is None
    assert "User:carol" in run("acls", "list", "--topic", "orders")
    assert (
        run("acls", "delete", "--principal", "User:carol", "--topic", "orders", "--format", "csv").count("carol") == 2
    )
    refused = cluster.produce("carol", "orders")
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    users = ("--entity-type", "users", "--entity-name", "carol")
    run(
        "kafka-configs",
        "--alter",
        *users,
        "--add-config",
        f"SCRAM-SHA-512=[password={CANARY}],producer_byte_rate=9999999",
    )
    assert "SCRAM-SHA-512=iterations=4096" in run("kafka-configs", "--describe", *users)
    run("users", "delete", "carol")
    assert "carol" not in run("users", "list")


def test_the_environment_is_a_command_config_for_the_tool_that_demands_one(
    cluster: Cluster, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    describe = ["kafka-delegation-tokens", "--bootstrap-server", f"127.0.0.1:{cluster.port}", "--describe"]
    assert main.run(describe) == 1
    assert "command-config" in capfd.readouterr().err
    monkeypatch.setenv(COMMAND_CONFIG_VARIABLE, str(cluster.file("alice", CANARY)))
    assert main.run(describe) == 0
    assert "Total number of tokens" in capfd.readouterr().out


def test_no_secret_is_in_any_file_of_the_broker_but_its_settings(cluster: Cluster) -> None:
    assert cluster.produce("alice", "orders") is None
    secrets = (CANARY.encode(), TOKEN_KEY.encode())
    leaks = [
        str(path)
        for path in cluster.directory.rglob("*")
        if path.is_file() and path.suffix != ".properties" and any(secret in path.read_bytes() for secret in secrets)
    ]
    assert leaks == []
