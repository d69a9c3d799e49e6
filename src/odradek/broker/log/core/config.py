"""The settings that a partition's log reads, with Kafka's defaults.

A value: whoever knows topic and broker configuration builds it, the log only reads it and is handed a new one
when a setting changes.
"""

from dataclasses import dataclass

from odradek.base.config.topic_config import TopicConfig

MAX_INT64 = 2**63 - 1
DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Field names are the topic configuration's keys with dots as underscores; units are in the names."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    preallocate: bool = False

    cleanup_policy: frozenset[str] = frozenset({"delete"})
    retention_ms: int = 7 * DAY_MS  # -1: for ever
    retention_bytes: int = -1
    delete_retention_ms: int = DAY_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = MAX_INT64
    min_cleanable_dirty_ratio: float = 0.5
    file_delete_delay_ms: int = 60_000

    flush_messages: int = MAX_INT64
    flush_ms: int = MAX_INT64

    max_message_bytes: int = 1_048_588
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = MAX_INT64
    message_timestamp_after_max_ms: int = MAX_INT64
    message_downconversion_enable: bool = True

    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False

    producer_id_expiration_ms: int = DAY_MS

    @classmethod
    def of(cls, topic: TopicConfig, producer_id_expiration_ms: int) -> "LogConfig":
        """Settings of a log from its topic's configuration, with the one that the broker sets for all."""
        return cls(
            segment_bytes=topic.segment_bytes,
            # A compacted record must leave the active segment in time to be cleaned in time.
            segment_ms=min(topic.segment_ms, topic.max_compaction_lag_ms) if topic.compact else topic.segment_ms,
            segment_jitter_ms=topic.segment_jitter_ms,
            segment_index_bytes=topic.segment_index_bytes,
            index_interval_bytes=topic.index_interval_bytes,
            preallocate=topic.preallocate,
            cleanup_policy=frozenset(topic.cleanup_policy),
            retention_ms=topic.retention_ms,
            retention_bytes=topic.retention_bytes,
            delete_retention_ms=topic.delete_retention_ms,
            min_compaction_lag_ms=topic.min_compaction_lag_ms,
            max_compaction_lag_ms=topic.max_compaction_lag_ms,
            min_cleanable_dirty_ratio=topic.min_cleanable_dirty_ratio,
            file_delete_delay_ms=topic.file_delete_delay_ms,
            flush_messages=topic.flush_messages,
            flush_ms=topic.flush_ms,
            max_message_bytes=topic.max_message_bytes,
            compression_type=topic.compression_type,
            compression_gzip_level=topic.compression_gzip_level,
            compression_lz4_level=topic.compression_lz4_level,
            compression_zstd_level=topic.compression_zstd_level,
            message_timestamp_type=topic.message_timestamp_type,
            message_timestamp_before_max_ms=topic.message_timestamp_before_max_ms,
            message_timestamp_after_max_ms=topic.message_timestamp_after_max_ms,
            message_downconversion_enable=topic.message_downconversion_enable,
            min_insync_replicas=topic.min_insync_replicas,
            unclean_leader_election_enable=topic.unclean_leader_election_enable,
            producer_id_expiration_ms=producer_id_expiration_ms,
        )

    @property
    def compacts(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        return "delete" in self.cleanup_policy
