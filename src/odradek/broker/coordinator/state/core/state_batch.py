"""A batch of coordinator state as bytes that may be written at once.

The same bytes as `record_batch.build_batch` makes, which knows everything that a batch can have; these batches are one
kind only, and making them is the larger part of what an offset commit costs.
"""

from collections.abc import Iterable
from functools import lru_cache
from struct import Struct

from odradek.base.checksum import crc32c
from odradek.base.value_classes import dataclass
from odradek.protocol.compression import Codec, compress
from odradek.protocol.record_batch import (
    ATTRIBUTES_AT,
    CRC_AT,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
)
from odradek.protocol.records import encode_varint

_HEADER = Struct(">qiibIhiqqqhii")
_CRC = Struct(">I")
_NO_TIME_DELTA = b"\0\0"  # attributes, and a timestamp that is the batch's own
_NULL = b"\1"
_NO_HEADERS = b"\0"
_varint = lru_cache(maxsize=2_048)(encode_varint)  # lengths and places: few numbers, four for each record


@dataclass(frozen=True, slots=True)
class TransactionalProducer:
    """The producer in whose transaction records are written."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


def state_batch(
    records: Iterable[tuple[bytes, bytes | None]],
    now_ms: int,
    codec: Codec,
    producer: TransactionalProducer | None = None,
) -> bytearray:
    """Keys and values, all of the same moment, at offsets from 0 on; with a producer, part of its transaction."""
    batch = bytearray(HEADER_SIZE)
    count = 0
    for key, value in records:
        record = b"".join(
            (
                _NO_TIME_DELTA,
                _varint(count),
                _varint(len(key)),
                key,
                _NULL if value is None else _varint(len(value)) + value,
                _NO_HEADERS,
            )
        )
        batch += _varint(len(record))
        batch += record
        count += 1
    if codec:
        batch[HEADER_SIZE:] = compress(codec, bytes(batch[HEADER_SIZE:]))
    _HEADER.pack_into(
        batch,
        0,
        0,
        len(batch) - LOG_OVERHEAD,
        NO_LEADER_EPOCH,
        MAGIC,
        0,
        codec if producer is None else codec | TRANSACTIONAL_BIT,
        count - 1,
        now_ms,
        now_ms,
        NO_PRODUCER_ID if producer is None else producer.producer_id,
        NO_PRODUCER_EPOCH if producer is None else producer.producer_epoch,
        NO_SEQUENCE,
        count,
    )
    with memoryview(batch) as view:
        _CRC.pack_into(batch, CRC_AT, crc32c(view[ATTRIBUTES_AT:]))
    return batch
