"""A topic's configuration: its overrides over the broker's defaults.

The log reads `TopicConfig`; DescribeConfigs shows `effective_values`.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.definition import ConfigValue
from odradek.base.config.keys import TOPIC_KEYS
from odradek.base.config.support_checks import refuse_unsupported
from odradek.base.config.topic_defaults import apply_deprecated_timestamp_limit
from odradek.base.errors import ConfigError, ErrorCode, KafkaError
from odradek.base.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """Every topic key, named like it with dots as underscores. -1 means unlimited where Kafka says so."""

    cleanup_policy: tuple[str, ...]
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: str
    compression_zstd_level: int
    delete_retention_ms: int
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    follower_replication_throttled_replicas: tuple[str, ...]
    index_interval_bytes: int
    leader_replication_throttled_replicas: tuple[str, ...]
    local_retention_bytes: int
    local_retention_ms: int
    max_compaction_lag_ms: int
    max_message_bytes: int
    message_downconversion_enable: bool
    message_format_version: str
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_difference_max_ms: int
    message_timestamp_type: str
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    preallocate: bool
    remote_log_copy_disable: bool
    remote_log_delete_on_disable: bool
    remote_storage_enable: bool
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    segment_jitter_ms: int
    segment_ms: int
    unclean_leader_election_enable: bool

    @property
    def compact(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def log_append_time(self) -> bool:
        """The broker stamps the records, instead of the producer."""
        return self.message_timestamp_type == "LogAppendTime"

    @classmethod
    def of(cls, broker: BrokerConfig, overrides: Mapping[str, str] | None = None) -> "TopicConfig":
        """Return the configuration of a topic with these overrides on this broker; raise KafkaError INVALID_CONFIG if
        they can't be used.
        """
        return cls._from_values(effective_values(broker.topic_defaults, overrides or {}))

    @classmethod
    def defaults(cls) -> "TopicConfig":
        """Kafka's defaults, for a log without a broker."""
        return cls._from_values({name: key.default for name, key in TOPIC_KEYS.items()})

    @classmethod
    def _from_values(cls, values: dict[str, ConfigValue]) -> "TopicConfig":
        apply_deprecated_timestamp_limit(values)
        # Each field is typed as its key is; mypy can't see that, a test does.
        arguments: dict[str, Any] = {field.name: values[field.name.replace("_", ".")] for field in fields(cls)}
        return cls(**arguments)


def effective_values(
    broker_defaults: Mapping[str, ConfigValue], overrides: Mapping[str, str]
) -> dict[str, ConfigValue]:
    """Return every topic key with its value. Overrides with unknown names, of other versions, are ignored."""
    values = dict(broker_defaults)
    try:
        for name, text in overrides.items():
            if name in TOPIC_KEYS:
                values[name] = TOPIC_KEYS[name].parse(text)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
    return values


def validate_topic_overrides(overrides: Mapping[str, str], broker_defaults: Mapping[str, ConfigValue]) -> None:
    """Raise KafkaError INVALID_CONFIG if a topic can't have these overrides on a broker with these defaults."""
    for name in overrides:
        if name not in TOPIC_KEYS:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    values = effective_values(broker_defaults, overrides)
    low, high = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    assert isinstance(low, int)
    assert isinstance(high, int)
    if low > high:
        message = f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})"
        raise KafkaError(ErrorCode.INVALID_CONFIG, message)
    try:
        refuse_unsupported(overrides, TOPIC_KEYS)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
