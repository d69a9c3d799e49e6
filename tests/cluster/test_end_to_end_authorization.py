"""A client from its login to its records, way by way: nothing without a right, and each right gives what it says.

The story is that of Apache Kafka's end-to-end tests of authorization. librdkafka logs in by each protocol and mechanism
of one broker, and Kafka's own tools by delegation tokens, which librdkafka can't.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from kafka_tools import KafkaTools
from odradek.base.config.login_classes import VALIDATORS
from odradek.base.config.properties import format_properties
from odradek.base.errors import ErrorCode
from odradek.base.errors import KafkaError as OurError
from odradek.broker.security.core.delegation_tokens import password_of
from odradek.client.acl_admin import EVERY_ENTRY, create_acls, delete_acls
from odradek.client.client_security import ClientSecurity
from odradek.client.cluster_client import ClusterClient
from odradek.client.scram_admin import NewPassword, alter_credentials
from odradek.client.token_admin import Token, create_token
from odradek.client.topic_admin import create_topic
from odradek.local.zookeeper_server import free_port
from odradek.model.acls import (
    AclBinding,
    AclEntry,
    AclFilter,
    AclOperation,
    PatternFilter,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from odradek.security.certificates import issue, new_authority
from odradek.security.jaas import OAUTH_MODULE, PLAIN_MODULE, SCRAM_MODULE
from token_issuer import Issuer, serving
from waiting import PATIENCE_S, eventually

from .conftest import unused_name
from .own_broker import STEADY, OwnBroker, running

PASSWORD = "s3cret"
SCRAM_USERS = ("salted", "longer", "over-tls", "owner", "scheduler")
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
TOPIC, GROUP, USER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.USER
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
NO_TOPIC, NO_GROUP = KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED
Settings = dict[str, Any]


@dataclass
class EndToEnd:
    broker: OwnBroker
    directory: Path
    ports: Mapping[str, int]
    issuer: Issuer

    def client(self, protocol: str = "SASL_PLAINTEXT", mechanism: str = "PLAIN", user: str = "broker") -> ClusterClient:
        module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
        login = f'{module} required username="{user}" password="{PASSWORD}";'
        settings = {"security.protocol": protocol, "sasl.mechanism": mechanism, "sasl.jaas.config": login}
        return ClusterClient(f"localhost:{self.ports[protocol]}", security=ClientSecurity(settings))

    def allow(
        self, principal: str, operation: AclOperation, kind: ResourceType, name: str, pattern: PatternType = LITERAL
    ) -> None:
        entry = AclEntry(principal, "*", operation, PermissionType.ALLOW)
        with self.client() as client:
            create_acls(client, [AclBinding(ResourcePattern(kind, name, pattern), entry)])

    def revoke_all(self) -> None:
        with self.client() as client:
            filters = [AclFilter(PatternFilter(kind, None, PatternType.ANY), EVERY_ENTRY) for kind in (TOPIC, GROUP)]
            delete_acls(client, filters)

    def topic(self) -> str:
        with self.client() as client:
            return create_topic(client, unused_name(), partitions=1, replication_factor=1).name

    def login(self, protocol: str, settings: Settings) -> Settings:
        """Settings of librdkafka."""
        if settings.get("sasl.mechanism") == "OAUTHBEARER":
            settings = {**settings, "oauth_cb": lambda config: (self.issuer.token(), time.time() + 600)}
        paths = {name: str(self.directory / name) for name in ("ca.pem", "alice.key", "alice.crt")}
        if protocol.endswith("SSL"):
            settings = {**settings, "ssl.ca.location": paths["ca.pem"]}
        if protocol == "SSL":
            settings |= {"ssl.key.location": paths["alice.key"], "ssl.certificate.location": paths["alice.crt"]}
        return {
            "bootstrap.servers": f"localhost:{self.ports[protocol]}",
            "security.protocol": protocol,
            "log_level": 0,
            **settings,
        }


@pytest.fixture(scope="module")
def cluster(zookeeper: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EndToEnd]:
    directory = tmp_path_factory.mktemp("end-to-end")
    authority = new_authority("test CA", 2)
    host, alice = issue(authority, "broker", ["localhost"], 2), issue(authority, "alice", [], 2)
    (directory / "ca.pem").write_bytes(authority.certificate)
    (directory / "broker.pem").write_bytes(host.key + host.certificate)
    (directory / "alice.key").write_bytes(alice.key)
    (directory / "alice.crt").write_bytes(alice.certificate)
    broker = OwnBroker(directory, zookeeper, **STEADY)
    ports = {"PLAINTEXT": broker.port, **{name: free_port() for name in ("SSL", "SASL_PLAINTEXT", "SASL_SSL")}}
    plain = f'{PLAIN_MODULE} required username="broker" password="{PASSWORD}" user_broker="{PASSWORD}" '
    with serving(Issuer()) as endpoints:
        settings = {
            "listeners": ",".join(f"{protocol}://localhost:{port}" for protocol, port in ports.items()),
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": f"{endpoints.url}/jwks",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(directory / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(directory / "ca.pem"),
            "ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=([a-z]+),O=Odradek$/of the certificate $1/,DEFAULT",
            "delegation.token.secret.key": "key of tokens",
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:broker",
        }
        for name in ("sasl_plaintext", "sasl_ssl"):
            prefix = f"listener.name.{name}"
            settings[f"{prefix}.plain.sasl.jaas.config"] = f'{plain} user_plain="{PASSWORD}";'
            settings[f"{prefix}.oauthbearer.sasl.jaas.config"] = f"{OAUTH_MODULE} required;"
            settings[f"{prefix}.oauthbearer.sasl.server.callback.handler.class"] = VALIDATORS[0]
        broker.set(settings)
        with running(broker):
            found = EndToEnd(broker, directory, ports, endpoints.issuer)
            with found.client() as client:
                for user in SCRAM_USERS:
                    passwords = [NewPassword(f"SCRAM-SHA-{bits}", PASSWORD) for bits in (256, 512)]
                    alter_credentials(client, user, passwords)
            yield found


def password(mechanism: str, user: str) -> Settings:
    return {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": PASSWORD}


WAYS: dict[str, tuple[str, str, Settings]] = {
    "nobody": ("PLAINTEXT", "User:ANONYMOUS", {}),
    "a certificate": ("SSL", "User:of the certificate alice", {}),
    "PLAIN": ("SASL_PLAINTEXT", "User:plain", password("PLAIN", "plain")),
    "PLAIN over TLS": ("SASL_SSL", "User:plain", password("PLAIN", "plain")),
    "SCRAM-SHA-256": ("SASL_PLAINTEXT", "User:salted", password("SCRAM-SHA-256", "salted")),
    "SCRAM-SHA-512": ("SASL_PLAINTEXT", "User:longer", password("SCRAM-SHA-512", "longer")),
    "SCRAM-SHA-512 over TLS": ("SASL_SSL", "User:over-tls", password("SCRAM-SHA-512", "over-tls")),
    "a bearer token": ("SASL_PLAINTEXT", "User:alice", {"sasl.mechanism": "OAUTHBEARER"}),
    "a bearer token over TLS": ("SASL_SSL", "User:alice", {"sasl.mechanism": "OAUTHBEARER"}),
}


def written(settings: Settings, topic: str) -> int:
    """The error of one record; 0: it is acknowledged."""
    codes: list[int] = []

    def told(error: KafkaError | None, message: Message) -> None:
        codes.append(0 if error is None else error.code())

    producer = Producer({**settings, "acks": "all"})
    producer.poll(0)
    producer.produce(topic, b"v", on_delivery=told)
    producer.flush(PATIENCE_S)
    return codes[0]


def read(settings: Settings, topic: str, group: str, *, assigned: bool = False) -> int:
    """The error that a consumer gets; 0: it gets a record. `assigned`: without its group."""
    consumer = Consumer({**settings, "group.id": group, "auto.offset.reset": "earliest"})
    try:
        if assigned:
            consumer.assign([TopicPartition(topic, 0, 0)])
        else:
            consumer.subscribe([topic])
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is None:
                continue
            error = message.error()
            if error is None or error.code() in ((NO_TOPIC,) if assigned else (NO_TOPIC, NO_GROUP)):
                return 0 if error is None else error.code()
        raise AssertionError("neither a record nor a refusal")
    finally:
        consumer.close()


@pytest.mark.parametrize("way", WAYS)
def test_each_right_gives_what_it_says(cluster: EndToEnd, way: str) -> None:
    protocol, principal, settings = WAYS[way]
    login, topic, group = cluster.login(protocol, settings), cluster.topic(), unused_name()
    try:
        assert written(login, topic) == NO_TOPIC
        assert read(login, topic, group) in (NO_TOPIC, NO_GROUP), "whichever is asked for first"
        cluster.allow(principal, WRITE, TOPIC, topic)
        assert written(login, topic) == 0
        assert read(login, topic, group, assigned=True) == NO_TOPIC, "who may write may describe, and not read"
        cluster.allow(principal, READ, TOPIC, topic)
        assert read(login, topic, group) == NO_GROUP
        cluster.allow(principal, READ, GROUP, group)
        assert read(login, topic, group) == 0
        cluster.revoke_all()
        assert written(login, topic) == NO_TOPIC
        cluster.allow(principal, WRITE, TOPIC, topic[:4], PREFIXED)
        assert written(login, topic) == 0
        cluster.revoke_all()
        cluster.allow("User:*", WRITE, TOPIC, "*")
        assert written(login, topic) == 0
    finally:
        cluster.revoke_all()


def by_token(cluster: EndToEnd, token: Token) -> Path:
    login = f'{SCRAM_MODULE} required username="{token.id}" password="{password_of(token.hmac)}" tokenauth="true";'
    path = cluster.directory / f"{token.id}.properties"
    settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": login,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(cluster.directory / "ca.pem"),
    }
    path.write_text(format_properties(settings))
    return path


@pytest.mark.parametrize("requester", ["owner", "scheduler"])
def test_a_token_has_the_rights_of_its_owner(cluster: EndToEnd, kafka_tools: KafkaTools, requester: str) -> None:
    """Also one that another principal requested for him, for which that one needs the right to create his tokens."""
    topic, group = cluster.topic(), unused_name()
    owner = None if requester == "owner" else ("User", "owner")
    try:
        with cluster.client(mechanism="SCRAM-SHA-256", user=requester) as client:
            if owner is not None:
                with pytest.raises(OurError) as refused:
                    create_token(client, (), -1, owner)
                assert refused.value.code is ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
                cluster.allow("User:scheduler", AclOperation.CREATE_TOKENS, USER, "User:owner")
            token = create_token(client, (), -1, owner)
        assert (token.owner, token.requester) == ("User:owner", f"User:{requester}")
        file, servers = by_token(cluster, token), ("--bootstrap-server", f"localhost:{cluster.ports['SASL_SSL']}")
        consume = (
            "kafka-console-consumer", *servers, "--consumer.config", file, "--topic", topic, "--group", group,
            "--from-beginning", "--max-messages", "1", "--timeout-ms", "20000",
        )  # fmt: skip
        denied = kafka_tools.run(*consume)
        assert "AuthorizationException" in denied.text, denied.text
        for operation, kind, name in ((WRITE, TOPIC, topic), (READ, TOPIC, topic), (READ, GROUP, group)):
            cluster.allow("User:owner", operation, kind, name)
        sent = kafka_tools.run(
            "kafka-console-producer", *servers, "--producer.config", file, "--topic", topic, stdin="one\n"
        )
        assert sent.status == 0, sent.text
        assert kafka_tools.run(*consume).output.split() == ["one"]
        cluster.revoke_all()
        eventually(lambda: "AuthorizationException" in kafka_tools.run(*consume).text)
    finally:
        cluster.revoke_all()
