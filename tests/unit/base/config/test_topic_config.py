"""A topic's overrides over the broker's defaults."""

import typing
from dataclasses import fields

import pytest

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.definition import ConfigType
from odradek.base.config.keys import TOPIC_KEYS
from odradek.base.config.topic_config import TopicConfig, validate_topic_overrides
from odradek.base.errors import ConfigError, ErrorCode, KafkaError

BROKER = BrokerConfig.from_properties(
    {
        "zookeeper.connect": "zk",
        "log.retention.minutes": "5",
        "message.max.bytes": "2000",
        "log.cleanup.policy": "compact",
    }
)


def test_fields_are_the_topic_keys_with_their_types() -> None:
    python_types = {
        ConfigType.BOOLEAN: bool, ConfigType.INT: int, ConfigType.LONG: int, ConfigType.DOUBLE: float,
        ConfigType.STRING: str, ConfigType.LIST: tuple[str, ...],
    }  # fmt: skip
    hints = typing.get_type_hints(TopicConfig)
    assert {f.name.replace("_", "."): hints[f.name] for f in fields(TopicConfig)} == {
        name: python_types[key.type] for name, key in TOPIC_KEYS.items()
    }


def test_broker_values_are_the_defaults_and_overrides_win() -> None:
    topic = TopicConfig.of(BROKER, {"retention.ms": "7", "preallocate": "TRUE"})
    assert (topic.retention_ms, topic.preallocate, topic.max_message_bytes) == (7, True, 2000)
    assert (topic.compact, topic.delete) == (True, False)
    assert TopicConfig.of(BROKER).retention_ms == 300_000


def test_without_a_broker_they_are_kafka_s() -> None:
    defaults = TopicConfig.defaults()
    assert (defaults.retention_ms, defaults.segment_bytes, defaults.max_message_bytes) == (
        604_800_000,
        1 << 30,
        1048588,
    )
    assert defaults.delete
    assert not defaults.compact


def test_timestamps() -> None:
    topic = TopicConfig.of(
        BROKER, {"message.timestamp.difference.max.ms": "9", "message.timestamp.type": "LogAppendTime"}
    )
    assert topic.message_timestamp_before_max_ms == topic.message_timestamp_after_max_ms == 9
    assert topic.log_append_time


def test_overrides_left_by_other_versions_are_passed_over() -> None:
    assert TopicConfig.of(BROKER, {"from.the.future": "x"}) == TopicConfig.of(BROKER)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"nope": "1"}, "Unknown topic config name: nope"),
        ({"segment.bytes": "abc"}, "Invalid value abc for configuration segment.bytes"),
        ({"segment.bytes": "13"}, "Invalid value 13 for configuration segment.bytes"),
        ({"cleanup.policy": "foo"}, "cleanup.policy"),
        ({"retention.ms": "-2"}, "retention.ms"),
        ({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}, "min.compaction.lag.ms (10) > max.compaction"),
        ({"remote.storage.enable": "true"}, "remote.storage.enable"),
        ({"remote.log.copy.disable": "true"}, "remote.log.copy.disable"),
    ],
)
def test_refusals(overrides: dict[str, str], message: str) -> None:
    with pytest.raises(KafkaError) as caught:
        validate_topic_overrides(overrides, BROKER.topic_defaults)
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    assert message in caught.value.message


def test_a_bad_value_can_be_told_from_a_conflict() -> None:
    with pytest.raises(KafkaError) as caught:
        validate_topic_overrides({"segment.bytes": "1"}, BROKER.topic_defaults)
    assert isinstance(caught.value.__cause__, ConfigError)


def test_good_overrides_pass() -> None:
    validate_topic_overrides(
        {"cleanup.policy": "", "segment.bytes": "14", "compression.type": "zstd"},
        {
            **BROKER.topic_defaults,
        },
    )
