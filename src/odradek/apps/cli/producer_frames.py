"""Produce requests made in advance: random records, encoded and compressed once, then only patched.

A batch's records don't change with its place: offsets and timestamps in them are deltas. To send a batch again, only
its header (time, sequence, checksum) and the request's correlation id are patched: microseconds instead of
milliseconds, so that the tool doesn't limit the measurement.
"""

import random
from dataclasses import dataclass
from struct import Struct

from odradek.base.checksum import crc32c
from odradek.client.producer_transaction import ProducerId
from odradek.client.record_sender import NOT_IDEMPOTENT
from odradek.model.topology import TopicPartition
from odradek.protocol.compression import Codec
from odradek.protocol.framing import encode_request
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.record_batch import ATTRIBUTES_AT, CRC_AT, MAX_SEQUENCE, NO_SEQUENCE, build_batch
from odradek.protocol.records import Record

_CORRELATION_AT = 8  # after the frame's length, the API key and its version
_BASE_TIMESTAMP_AT = 27
_BASE_SEQUENCE_AT = 53
_INT32 = Struct(">i")
_UINT32 = Struct(">I")
_TIMESTAMPS = Struct(">qq")
_VARIANTS = 8  # batches with different contents, so that caches and codecs don't see only one
_TO_LETTERS = bytes(ord("A") + byte % 26 for byte in range(256))
# Beyond the payload, a record of a perf batch: length, attributes, two deltas, key, value length, header count.
_RECORD_OVERHEAD_BYTES = 10


def records_per_batch(batch_size: int, record_size: int) -> int:
    return max(1, batch_size // (record_size + _RECORD_OVERHEAD_BYTES))


@dataclass(frozen=True, slots=True)
class FrameSettings:
    """Fields of the requests, and the form of their batches."""

    version: int
    client_id: str
    acks: int
    timeout_ms: int
    compression: Codec
    record_size: int
    batch_records: int


class ProducerFrames:
    """The requests to one partition."""

    def __init__(self, tp: TopicPartition, settings: FrameSettings, producer: ProducerId) -> None:
        self._tp = tp
        self._settings = settings
        self._producer = producer
        batch_records = self._batch_records = settings.batch_records
        self._variants = [self._make(batch_records, seed) for seed in range(_VARIANTS)]
        self._next_variant = 0
        self._sequence = 0

    def next(self, correlation_id: int, now_ms: int, count: int) -> bytes:
        """Return a request with `count` records: a full batch, or fewer at the end."""
        if count == self._batch_records:
            frame, at = self._variants[self._next_variant]
            self._next_variant = (self._next_variant + 1) % _VARIANTS
        else:
            frame, at = self._make(count, _VARIANTS)
        _INT32.pack_into(frame, _CORRELATION_AT, correlation_id)
        _TIMESTAMPS.pack_into(frame, at + _BASE_TIMESTAMP_AT, now_ms, now_ms)
        if self._producer is not NOT_IDEMPOTENT:
            _INT32.pack_into(frame, at + _BASE_SEQUENCE_AT, self._sequence)
            self._sequence = (self._sequence + count) & MAX_SEQUENCE
        (length,) = _INT32.unpack_from(frame, at + 8)
        with memoryview(frame) as view:
            _UINT32.pack_into(frame, at + CRC_AT, crc32c(view[at + ATTRIBUTES_AT : at + 12 + length]))
        return bytes(frame)

    def _make(self, count: int, seed: int) -> tuple[bytearray, int]:
        """Make a frame; return it with the position of its batch."""
        chance, settings = random.Random(seed), self._settings
        batch = build_batch(
            [Record(n, 0, None, chance.randbytes(settings.record_size).translate(_TO_LETTERS)) for n in range(count)],
            compression=settings.compression,
            producer_id=self._producer.id,
            producer_epoch=self._producer.epoch,
            base_sequence=NO_SEQUENCE if self._producer is NOT_IDEMPOTENT else 0,
        )
        request = ProduceRequest(
            acks=settings.acks,
            timeout_ms=settings.timeout_ms,
            topic_data=[
                TopicProduceData(
                    name=self._tp.topic, partition_data=[PartitionProduceData(index=self._tp.partition, records=batch)]
                )
            ],
        )
        frame = bytearray(encode_request(request, settings.version, 0, settings.client_id))
        return frame, frame.index(batch)
