"""Facts about a produced batch that are needed before its validation, from its header.

They decide which thread serves a Produce, whether it belongs to a transaction, and which producer sent a refused batch.
They are not trusted for anything else, because the bytes are not validated yet.
"""

from struct import Struct
from typing import NamedTuple, TypeGuard

from odradek.native.load import compiled
from odradek.protocol.messages.produce import TopicProduceData
from odradek.protocol.record_batch import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    HEADER_SIZE,
    MAGIC,
    MAGIC_AT,
    NO_PRODUCER_ID,
    PRODUCER_ID_AT,
    RECORD_COUNT_AT,
    TRANSACTIONAL_BIT,
)

_MAGIC_TO_COUNT = Struct(f">b4xh{RECORD_COUNT_AT - ATTRIBUTES_AT - 2}xi")
_PRODUCER_FIELDS = Struct(">qhi")  # id, epoch, base sequence


class BatchSurvey(NamedTuple):
    """Numbers over all batches of a request."""

    records: int
    compressed: int
    transactional: int
    older: int
    """Message sets of the formats before batches."""


class IdempotentProducer(NamedTuple):
    id: int
    epoch: int
    sequence: int


def survey_batches(topics: list[TopicProduceData]) -> BatchSurvey:
    """Add up facts of the headers of all batches."""
    if compiled is not None and (found := compiled.survey_batches(topics)) is not None:
        # tuple.__new__ skips the Python-level constructor of NamedTuple: one is made per Produce.
        usual: BatchSurvey = tuple.__new__(BatchSurvey, (*found, 0))
        return usual
    records = compressed = transactional = older = 0
    for topic in topics:
        for data in topic.partition_data:
            batch = data.records
            if not isinstance(batch, memoryview) or len(batch) < HEADER_SIZE:
                continue
            magic, attributes, count = _MAGIC_TO_COUNT.unpack_from(batch, MAGIC_AT)
            if magic != MAGIC:
                older += 1
                continue
            records += count
            compressed += attributes & CODEC_MASK != 0
            transactional += attributes & TRANSACTIONAL_BIT != 0
    return BatchSurvey(records, compressed, transactional, older)


def is_transactional(records: object) -> TypeGuard[memoryview]:
    """Return whether the batch itself is transactional, independent of its request."""
    if not isinstance(records, memoryview) or len(records) < HEADER_SIZE or records[MAGIC_AT] != MAGIC:
        return False
    return bool(records[ATTRIBUTES_AT + 1] & TRANSACTIONAL_BIT)


def idempotent_producer(records: memoryview) -> IdempotentProducer | None:
    """The idempotent producer of the batch, if it has one."""
    if len(records) < HEADER_SIZE or records[MAGIC_AT] != MAGIC:
        return None
    producer = IdempotentProducer(*_PRODUCER_FIELDS.unpack_from(records, PRODUCER_ID_AT))
    return None if producer.id == NO_PRODUCER_ID else producer
