"""The Java client's settings in librdkafka's words; librdkafka itself takes them."""

import pytest
from confluent_kafka import Consumer

from odradek.apps.pipeline.source.connection import client_settings
from odradek.apps.pipeline.source.errors import OptionError
from odradek.apps.pipeline.source.fetching import consumer_settings

HERE = {"kafka.bootstrap.servers": "127.0.0.1:1"}
PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="se;cret";'


def test_security_as_the_connector_takes_it() -> None:
    settings = client_settings(
        HERE
        | {
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": PLAIN,
            "kafka.ssl.truststore.location": "/etc/ca.pem",
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.endpoint.identification.algorithm": "",
        }
    )
    assert settings == {
        "log_level": 3,
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": "se;cret",
        "ssl.ca.location": "/etc/ca.pem",
        "ssl.endpoint.identification.algorithm": "none",
    }


def test_librdkafka_takes_what_java_clients_are_tuned_with() -> None:
    tuned = {
        "kafka.fetch.max.wait.ms": "100",
        "kafka.max.partition.fetch.bytes": "1048576",
        "kafka.max.poll.records": "500",
        "kafka.receive.buffer.bytes": "65536",
        "kafka.client.id": "me",
        "kafka.isolation.level": "read_committed",
        "kafka.group.id": "mine",
    }
    Consumer(consumer_settings(client_settings(HERE | tuned))).close()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "kafka.bootstrap.servers"),
        (HERE | {"kafka.key.deserializer": "x"}, "keys are read as binary"),
        (
            HERE | {"kafka.ssl.truststore.location": "/etc/trust.jks"},
            "trust.jks for configuration ssl.truststore.location: No such file",
        ),
        (
            HERE | {"kafka.ssl.keystore.location": "/etc/keys.jks"},
            "keys.jks for configuration ssl.keystore.location: No such file",
        ),
        (HERE | {"kafka.sasl.jaas.config": "some.Module required;"}, "neither username"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        client_settings(options)
