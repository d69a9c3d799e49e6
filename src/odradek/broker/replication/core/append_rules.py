"""Rules of appends to a topic's partitions, by its configuration."""

from dataclasses import replace

from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.core.validation import BatchRules, Origin, RecordCheck
from odradek.protocol.compression import Codec
from odradek.protocol.record_batch import TimestampType

_DEFAULTS = LogConfig()
# "producer" isn't here: it means that the producer chooses the codec.
_CODECS = {"uncompressed": Codec.NONE} | {codec.name.lower(): codec for codec in Codec if codec}


def batch_rules(config: LogConfig) -> BatchRules:
    """Return the rules of appends to a topic, from its configuration."""
    codec = _CODECS.get(config.compression_type)
    return BatchRules(
        max_message_bytes=config.max_message_bytes,
        timestamp_type=(
            TimestampType.LOG_APPEND_TIME
            if config.message_timestamp_type == "LogAppendTime"
            else TimestampType.CREATE_TIME
        ),
        timestamp_before_max_ms=config.message_timestamp_before_max_ms,
        timestamp_after_max_ms=config.message_timestamp_after_max_ms,
        compression_type=codec,
        compression_level=_level(config, codec),
        compacted=config.compacts,
    )


def _level(config: LogConfig, codec: Codec | None) -> int | None:
    """The level of the topic's own codec; None where it is Kafka's default."""
    levels = {
        Codec.GZIP: (config.compression_gzip_level, _DEFAULTS.compression_gzip_level),
        Codec.LZ4: (config.compression_lz4_level, _DEFAULTS.compression_lz4_level),
        Codec.ZSTD: (config.compression_zstd_level, _DEFAULTS.compression_zstd_level),
    }
    level, default = levels.get(codec, (None, None)) if codec is not None else (None, None)
    return None if level == default else level


def own_rules(rules: BatchRules) -> BatchRules:
    """Return the rules for batches that this broker made itself: their records need no check."""
    return replace(rules, origin=Origin.COORDINATOR, compacted=False, verify_records=RecordCheck.HEADER)
