"""Settings of a partition's log: the keys of its topic that the log reads; `base/config/keys` has their defaults.

A value: the owner of topic and broker configuration builds it, the log reads it and gets a new one when a setting
changes.
"""

from dataclasses import fields
from typing import Any

from odradek.base.config.topic_config import TopicConfig
from odradek.base.value_classes import dataclass

MAX_INT64 = 2**63 - 1
DAY_MS = 24 * 60 * 60 * 1000

_DEFAULTS = TopicConfig.defaults()


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Field names are the topic configuration's keys with dots as underscores; units are in the names."""

    segment_bytes: int = _DEFAULTS.segment_bytes
    segment_ms: int = _DEFAULTS.segment_ms
    segment_jitter_ms: int = _DEFAULTS.segment_jitter_ms
    segment_index_bytes: int = _DEFAULTS.segment_index_bytes
    index_interval_bytes: int = _DEFAULTS.index_interval_bytes
    preallocate: bool = _DEFAULTS.preallocate

    cleanup_policy: frozenset[str] = frozenset(_DEFAULTS.cleanup_policy)
    retention_ms: int = _DEFAULTS.retention_ms  # -1: for ever
    retention_bytes: int = _DEFAULTS.retention_bytes
    delete_retention_ms: int = _DEFAULTS.delete_retention_ms
    min_compaction_lag_ms: int = _DEFAULTS.min_compaction_lag_ms
    max_compaction_lag_ms: int = _DEFAULTS.max_compaction_lag_ms
    min_cleanable_dirty_ratio: float = _DEFAULTS.min_cleanable_dirty_ratio
    file_delete_delay_ms: int = _DEFAULTS.file_delete_delay_ms

    flush_messages: int = _DEFAULTS.flush_messages
    flush_ms: int = _DEFAULTS.flush_ms

    max_message_bytes: int = _DEFAULTS.max_message_bytes
    compression_type: str = _DEFAULTS.compression_type
    compression_gzip_level: int = _DEFAULTS.compression_gzip_level
    compression_lz4_level: int = _DEFAULTS.compression_lz4_level
    compression_zstd_level: int = _DEFAULTS.compression_zstd_level
    message_timestamp_type: str = _DEFAULTS.message_timestamp_type
    message_timestamp_before_max_ms: int = _DEFAULTS.message_timestamp_before_max_ms
    message_timestamp_after_max_ms: int = _DEFAULTS.message_timestamp_after_max_ms
    message_downconversion_enable: bool = _DEFAULTS.message_downconversion_enable

    min_insync_replicas: int = _DEFAULTS.min_insync_replicas
    unclean_leader_election_enable: bool = _DEFAULTS.unclean_leader_election_enable

    producer_id_expiration_ms: int = DAY_MS

    @classmethod
    def of(cls, topic: TopicConfig, producer_id_expiration_ms: int) -> "LogConfig":
        """Settings of a log from its topic's configuration, with the one that the broker sets for all."""
        values: dict[str, Any] = {field.name: getattr(topic, field.name, None) for field in fields(cls)}
        values["cleanup_policy"] = frozenset(topic.cleanup_policy)
        values["producer_id_expiration_ms"] = producer_id_expiration_ms
        if topic.compact:  # a compacted record must leave the active segment in time to be cleaned in time
            values["segment_ms"] = min(topic.segment_ms, topic.max_compaction_lag_ms)
        return cls(**values)

    @property
    def compacts(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        return "delete" in self.cleanup_policy
