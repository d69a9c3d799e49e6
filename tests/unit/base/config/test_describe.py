"""Answers of DescribeConfigs, compared with those of Apache Kafka 3.9.2 for the same properties."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.definition import ConfigSource, ConfigType, Password
from odradek.base.config.describe import ConfigEntry, describe_broker, describe_topic
from odradek.base.config.deviations import DEVIATIONS
from odradek.base.config.live_config import LiveConfig

REFERENCE = Path(__file__).parents[3] / "wire" / "data" / "kafka_3_9_configs.json"


@pytest.fixture(scope="module")
def kafka() -> dict[str, Any]:
    reference: dict[str, Any] = json.loads(REFERENCE.read_text())
    return reference


@pytest.fixture(scope="module")
def broker(kafka: dict[str, Any]) -> BrokerConfig:
    """With the password of a key that isn't supported, since a secret must be hidden in any case."""
    secret = {"ssl.key.password": kafka["properties"]["ssl.key.password"]}
    config = BrokerConfig.from_properties({k: v for k, v in kafka["properties"].items() if k not in secret})
    values = {name: Password(text) for name, text in secret.items()}
    return replace(config, originals={**config.originals, **secret}, values={**config.values, **values})


def as_facts(entries: list[ConfigEntry]) -> list[list[object]]:
    return sorted(
        [e.name, e.value, e.type, e.source, e.read_only, e.sensitive, [[s.name, s.value, s.source] for s in e.synonyms]]
        for e in entries
    )


def without_deviations(facts: list[list[Any]]) -> list[list[Any]]:
    """A synonym may mention a deviation too, as a listener's max.connections does."""
    return [
        [*fact[:6], [synonym for synonym in fact[6] if synonym[0] not in DEVIATIONS]]
        for fact in facts
        if fact[0] not in DEVIATIONS and not fact[0].startswith("odradek.")
    ]


def test_the_broker_as_kafka_tells_it(kafka: dict[str, Any], broker: BrokerConfig) -> None:
    assert without_deviations(as_facts(describe_broker(LiveConfig(broker)))) == without_deviations(
        kafka["described_broker"]
    )


def test_a_topic_as_kafka_tells_it(kafka: dict[str, Any], broker: BrokerConfig) -> None:
    assert as_facts(describe_topic(LiveConfig(broker), kafka["overrides"])) == kafka["described_topic"]


def test_secrets_and_unknown_keys_have_no_value(broker: BrokerConfig) -> None:
    entries = {entry.name: entry for entry in describe_broker(LiveConfig(broker))}
    assert entries["ssl.key.password"].value is None
    assert entries["ssl.key.password"].synonyms[0].value is None
    assert entries["my.unknown.key"].value is None
    assert entries["my.unknown.key"].type is ConfigType.UNKNOWN


def test_an_override_that_this_version_does_not_know_is_still_shown(broker: BrokerConfig) -> None:
    entries = {entry.name: entry for entry in describe_topic(LiveConfig(broker), {"from.the.future": "x"})}
    assert entries["from.the.future"].sensitive
    assert entries["from.the.future"].value is None
    assert entries["from.the.future"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
