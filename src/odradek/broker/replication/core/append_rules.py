"""Rules of appends to a topic's partitions, by its configuration."""

from dataclasses import replace

from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.core.validation import BatchRules, Origin, RecordCheck
from odradek.protocol.compression import Codec
from odradek.protocol.record_batch import TimestampType

# "producer" isn't here: it means to leave the codec to whoever produces.
_CODECS = {"uncompressed": Codec.NONE} | {codec.name.lower(): codec for codec in Codec if codec}


def batch_rules(config: LogConfig) -> BatchRules:
    """A topic's configuration as the rules for what may be appended to it."""
    return BatchRules(
        max_message_bytes=config.max_message_bytes,
        timestamp_type=(
            TimestampType.LOG_APPEND_TIME
            if config.message_timestamp_type == "LogAppendTime"
            else TimestampType.CREATE_TIME
        ),
        timestamp_before_max_ms=config.message_timestamp_before_max_ms,
        timestamp_after_max_ms=config.message_timestamp_after_max_ms,
        compression_type=_CODECS.get(config.compression_type),
        compacted=config.compacts,
    )


def own_rules(rules: BatchRules) -> BatchRules:
    """Return the rules for batches that this broker made itself: their records need no check."""
    return replace(rules, origin=Origin.COORDINATOR, compacted=False, verify_records=RecordCheck.HEADER)
