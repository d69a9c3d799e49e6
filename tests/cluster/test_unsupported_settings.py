"""Settings that this broker doesn't support, given to Kafka's own tools: refused by name, and not kept."""

from collections.abc import Iterator

import pytest

from kafka_tools import KafkaTools

from .own_broker import STEADY, OwnBroker


@pytest.fixture(scope="module")
def broker(zookeeper: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnBroker]:
    broker = OwnBroker(tmp_path_factory.mktemp("unsupported"), zookeeper, **STEADY, auto_create_topics_enable="false")
    try:
        broker.start()
        broker.create_topic("plain")
        yield broker
    finally:
        broker.stop()


TIERED = "tiered storage isn't supported, all segments stay in log.dirs. Valid here: false. Remove the key."


def test_a_topic_is_not_created_with_tiered_storage(broker: OwnBroker, kafka_tools: KafkaTools) -> None:
    bootstrap = ("--bootstrap-server", broker.bootstrap)
    refused = kafka_tools.run(
        "kafka-topics", *bootstrap, "--create", "--topic", "t", "--config", "remote.storage.enable=true"
    )
    assert refused.status == 1
    assert f"Invalid value true for configuration remote.storage.enable: {TIERED}" in refused.text
    assert kafka_tools.run("kafka-topics", *bootstrap, "--list").text.split() == ["plain"]


@pytest.mark.parametrize(
    ("entity", "setting", "words"),
    [
        (("topics", "plain"), "remote.storage.enable=true", f"configuration remote.storage.enable: {TIERED}"),
        (("topics", "plain"), "remote.log.copy.disable=true", "configuration remote.log.copy.disable: tiered storage"),
        (("brokers", "0"), "metric.reporters=com.example.Reporter", "metric.reporters: Java classes can't run"),
        (
            ("brokers", "0"),
            "listener.name.plaintext.ssl.keystore.location=/keys",
            "Set these in server.properties and restart the broker",
        ),
    ],
)
def test_kafka_configs_is_told_why(
    broker: OwnBroker, kafka_tools: KafkaTools, entity: tuple[str, str], setting: str, words: str
) -> None:
    kind, name = entity
    common = ("--bootstrap-server", broker.bootstrap, "--entity-type", kind, "--entity-name", name)
    refused = kafka_tools.run("kafka-configs", *common, "--alter", "--add-config", setting)
    assert words in refused.text
    assert "Completed updating config" not in refused.text
    described = kafka_tools.run("kafka-configs", *common, "--describe")
    assert setting.partition("=")[0] not in described.text
