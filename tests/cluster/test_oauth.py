"""Bearer tokens: one broker, an issuer with its endpoints, and the clients that people use."""

import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from foreign_clients import kafkajs_login
from kafka_tools import KafkaTools
from obtaining import skipped_if_unobtainable
from odradek.base.config.login_classes import LOGINS, VALIDATORS
from odradek.base.config.properties import format_properties
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.client.client_security import ClientSecurity
from odradek.local.zookeeper_server import free_port
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.security.jaas import OAUTH_MODULE
from token_issuer import CLIENT_ID, CLIENT_SECRET, Endpoints, Issuer, serving, unsigned
from waiting import eventually

from .conftest import unused_name
from .own_broker import STEADY, OwnBroker, run_odradek, running

LOGIN = "sasl.login.callback.handler.class"


@dataclass
class Tokens:
    broker: OwnBroker
    endpoints: Endpoints
    directory: Path
    port: int
    metrics_port: int

    @property
    def bootstrap(self) -> str:
        return f"localhost:{self.port}"

    def settings(self, secret: str = CLIENT_SECRET) -> dict[str, str]:
        """Settings of a client, as Kafka's tools take them from a file."""
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            LOGIN: LOGINS[0],
            "sasl.oauthbearer.token.endpoint.url": f"{self.endpoints.url}/token",
            "sasl.login.refresh.min.period.seconds": "1",
            "sasl.login.refresh.buffer.seconds": "0",
            "sasl.login.retry.backoff.max.ms": "200",
            "sasl.jaas.config": f'{OAUTH_MODULE} required clientId="{CLIENT_ID}" clientSecret="{secret}" '
            'extension_pool="five";',
        }

    def file(self, **changed: str) -> Path:
        path = self.directory / f"client-{len(changed)}.properties"
        path.write_text(format_properties(self.settings(**changed)))
        return path

    def renewals(self) -> float:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=20) as answer:
            lines = answer.read().decode().splitlines()
        name = "kafka_server_socketservermetrics_successful_reauthentication_total"
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


@pytest.fixture(scope="module")
def tokens(zookeeper: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tokens]:
    directory, port, metrics_port = tmp_path_factory.mktemp("tokens"), free_port(), free_port()
    broker = OwnBroker(directory, zookeeper, odradek_metrics_port=str(metrics_port), **STEADY)
    with serving(Issuer()) as endpoints:
        endpoints.claims = {"aud": "logs", "iss": "https://issuer", "name": "alice of tokens"}
        broker.set(
            {
                "listeners": f"PLAINTEXT://127.0.0.1:{broker.port},TOKENS://localhost:{port}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TOKENS:SASL_PLAINTEXT",
                "inter.broker.listener.name": "TOKENS",
                "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                "listener.name.tokens.oauthbearer.sasl.jaas.config": f"{OAUTH_MODULE} required "
                f'clientId="{CLIENT_ID}" clientSecret="{CLIENT_SECRET}";',
                "listener.name.tokens.oauthbearer.sasl.server.callback.handler.class": VALIDATORS[0],
                f"listener.name.tokens.oauthbearer.{LOGIN}": LOGINS[0],
                "sasl.oauthbearer.token.endpoint.url": f"{endpoints.url}/token",
                "sasl.oauthbearer.jwks.endpoint.url": f"{endpoints.url}/jwks",
                "sasl.oauthbearer.expected.audience": "logs",
                "sasl.oauthbearer.expected.issuer": "https://issuer",
                "sasl.oauthbearer.sub.claim.name": "name",
                "connection.failed.authentication.delay.ms": "20",
            }
        )
        with running(broker):
            yield Tokens(broker, endpoints, directory, port, metrics_port)


def test_librdkafka_and_its_re_authentication(tokens: Tokens) -> None:
    topic = unused_name()
    tokens.broker.create_topic(topic)

    def token(config: str) -> tuple[str, float]:
        """Good for three seconds: the client has to authenticate again."""
        ends = time.time() + 3
        return tokens.endpoints.issuer.token({**tokens.endpoints.claims, "exp": ends}), ends

    settings = {
        "bootstrap.servers": tokens.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": token,
        "log_level": 0,
    }
    before, sent = tokens.renewals(), 0
    producer = Producer(settings)
    while not sent or (tokens.renewals() < before + 2 and sent < 300):
        producer.produce(topic, str(sent).encode())
        assert producer.flush(30) == 0
        producer.poll(0.05)
        sent += 1
    assert tokens.renewals() >= before + 2
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.poll(0)  # the first token comes by a callback
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert [message.value() for message in consumer.consume(sent, 30)] == [str(n).encode() for n in range(sent)]
    consumer.close()


def test_librdkafka_is_told_of_a_refused_token(tokens: Tokens) -> None:
    errors: list[KafkaError] = []
    claims = {"sub": "x", "name": "x", "iat": time.time(), "exp": time.time() + 60, "aud": "logs"}
    producer = Producer(
        {
            "bootstrap.servers": tokens.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda config: (unsigned(claims), time.time() + 60),
            "log_level": 0,
            "error_cb": errors.append,
        }
    )
    eventually(lambda: producer.poll(0.1) >= 0 and KafkaError._AUTHENTICATION in {error.code() for error in errors})
    assert any("invalid_token" in error.str() for error in errors)


def test_kafkajs(tokens: Tokens) -> None:
    topic, issuer = unused_name(), tokens.endpoints.issuer
    tokens.broker.create_topic(topic)
    with skipped_if_unobtainable():
        found = kafkajs_login(tokens.bootstrap, topic, "oauthbearer", "", issuer.token(tokens.endpoints.claims))
    assert found == {"error": 0, "seen": ["one", "two"]}
    refused = kafkajs_login(tokens.bootstrap, topic, "oauthbearer", "", unsigned(tokens.endpoints.claims))
    assert refused.keys() == {"refused"}, "it takes the refusal for a success, and is closed at its next request"


def test_kafka_s_own_tools(tokens: Tokens, kafka_tools: KafkaTools) -> None:
    topic, file, common = unused_name(), tokens.file(), ("--bootstrap-server", tokens.bootstrap)
    made = kafka_tools.run("kafka-topics", *common, "--command-config", file, "--create", "--topic", topic)
    assert made.status == 0, made.text
    before, tokens.endpoints.lifetime_s = tokens.renewals(), 4
    sent = kafka_tools.run(
        "kafka-producer-perf-test", "--producer-props", f"bootstrap.servers={tokens.bootstrap}", "--producer.config",
        file, "--topic", topic, "--num-records", "60", "--throughput", "10", "--record-size", "10",
    )  # fmt: skip
    tokens.endpoints.lifetime_s = 600
    assert sent.status == 0, sent.text
    assert tokens.renewals() > before
    read = kafka_tools.run(
        "kafka-console-consumer", *common, "--consumer.config", file, "--topic", topic, "--from-beginning",
        "--max-messages", "60", "--timeout-ms", "20000",
    )  # fmt: skip
    assert len(read.output.split()) == 60, read.text


def test_our_own_client_and_commands(tokens: Tokens) -> None:
    with BrokerClient("localhost", tokens.port, security=ClientSecurity(tokens.settings())) as client:
        assert client.send(MetadataRequest(topics=[])).brokers
    told = run_odradek("topics", "list", "--bootstrap-server", tokens.bootstrap, "--command-config", tokens.file())
    assert told.returncode == 0, told.stderr
    file = tokens.file(secret="wrong secret")
    refused = run_odradek("topics", "list", "--bootstrap-server", tokens.bootstrap, "--command-config", file)
    assert refused.returncode == 1
    assert "status 401" in refused.stderr
    assert "wrong secret" not in refused.stderr
    signed = tokens.endpoints.claims
    tokens.endpoints.claims = {"aud": "others"}
    try:
        with pytest.raises(ConnectionFailed, match="invalid_token"):
            BrokerClient("localhost", tokens.port, security=ClientSecurity(tokens.settings()))
    finally:
        tokens.endpoints.claims = signed


def test_another_key_of_the_issuer_is_found(tokens: Tokens) -> None:
    before, tokens.endpoints.issuer = tokens.endpoints.issuer, Issuer("another")
    try:
        security = ClientSecurity(tokens.settings())
        eventually(lambda: _connects(tokens.port, security))
    finally:
        tokens.endpoints.issuer = before


def _connects(port: int, security: ClientSecurity) -> bool:
    try:
        BrokerClient("localhost", port, security=security).close()
    except ConnectionFailed:
        return False
    return True


def test_no_token_and_no_secret_is_in_the_log(tokens: Tokens) -> None:
    assert CLIENT_SECRET not in tokens.broker.log
    assert "eyJ" not in tokens.broker.log
