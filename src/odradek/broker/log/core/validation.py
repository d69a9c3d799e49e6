"""Validation of a producer's batches before they are appended, and assignment of their offsets.

The role of Kafka's LogValidator: a function of the bytes, the topic's rules and the time; no clock, no file, no lock. A
batch of magic 2 that needs no change except its offsets is patched in place, in the request's own buffer, and its
records are not decoded. It is rebuilt when it can't be kept: an older format, or another codec than the topic's.

How far records are looked into:

- always, by the header: sizes, CRC, counts, attributes, the largest timestamp;
- a walk over the record lengths (`record_walk.count_records`), when not compressed always, when compressed unless
  `verify_records` is HEADER, after a bounded decompression;
- every field of every record, with FIELDS, and whenever a rule asks about single records: compacted topics need keys,
  and `message.timestamp.before.max.ms` the oldest timestamp.

All of it is paid for by a budget (`check_budget`) that the batches of one request share.
"""

from collections.abc import Callable, Iterable
from dataclasses import field
from enum import Enum
from typing import Final, NamedTuple

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.value_classes import dataclass
from odradek.broker.log.core.batch_info import BatchInfo, batch_info
from odradek.broker.log.core.check_budget import (
    BATCH_STEPS,
    DECODING_STEPS,
    FIELDS_STEPS,
    LENGTH_STEPS,
    UNBOUNDED,
    CheckBudget,
)
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.core.refused_records import SEARCHED_MAX, keyless, out_of_time
from odradek.native.load import compiled
from odradek.protocol.compression import Codec, compress
from odradek.protocol.legacy_records import read_message_set
from odradek.protocol.record_batch import (
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    NO_TIMESTAMP,
    BatchHeader,
    TimestampType,
    assign,
    batch_size,
    batches,
    build_batch,
    check_crc,
    pack_batch,
    read_header,
    set_max_timestamp,
)
from odradek.protocol.record_walk import MIN_RECORD_SIZE, RecordSpan, count_records, walk_records
from odradek.protocol.records import DEFAULT_MAX_DECOMPRESSED, Buffer, Record, read_plain_records

NO_LIMIT_MS: Final = 2**63 - 1
_DEFAULTS: Final = LogConfig()
_FIRST_PRODUCE_VERSION_OF_MAGIC_2: Final = 3
_FIRST_PRODUCE_VERSION_OF_ZSTD: Final = 7
NO_PRODUCE: Final = 1 << 16  # in place of a version, for records from elsewhere


class Origin(Enum):
    """Origin of an append: a client, a coordinator, a replica."""

    CLIENT = "a producer on the wire: everything is checked"
    COORDINATOR = "this broker itself: may write control batches, and several batches at once"


class RecordCheck(Enum):
    """Depth of the check of records that no rule asks about. The costs are of a 64 KiB batch of 100-byte records."""

    HEADER = "compressed records are taken as they are: 0.01 ms"
    LENGTHS = "there are as many as the batch says, and they fill it: 0.03 ms, compressed 0.1-0.4 ms"
    FIELDS = "each can be decoded, has the right offset, and the largest timestamp is put right: 0.6 ms more"


@dataclass(frozen=True, slots=True)
class BatchRules:
    """The part of a topic's configuration that applies to single batches."""

    max_message_bytes: int = _DEFAULTS.max_message_bytes
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    timestamp_before_max_ms: int = _DEFAULTS.message_timestamp_before_max_ms
    timestamp_after_max_ms: int = _DEFAULTS.message_timestamp_after_max_ms
    compression_type: Codec | None = None  # None keeps the producer's codec
    compression_level: int | None = None
    compacted: bool = False
    origin: Origin = Origin.CLIENT
    verify_records: RecordCheck = RecordCheck.LENGTHS
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED
    asks_about_records: bool = field(init=False)
    """True if the fields of single records matter."""
    keeps_batches: bool = field(init=False)  # whether a producer's batch is written unchanged, without further checks
    stamps: bool = field(init=False)  # whether records get the time of their append
    places_only: bool = field(init=False)  # whether a producer's batch gets an offset, and no other timestamp
    limits: tuple[int, int, bool] = field(init=False)  # of size and time, and `stamps`, for the compiled inner loop

    def __post_init__(self) -> None:
        asks = (
            self.compacted or self.timestamp_before_max_ms != NO_LIMIT_MS or self.verify_records is RecordCheck.FIELDS
        )
        object.__setattr__(self, "asks_about_records", asks)
        keeps = not asks and self.compression_type is None and self.origin is Origin.CLIENT
        object.__setattr__(self, "keeps_batches", keeps)
        stamps = self.timestamp_type is TimestampType.LOG_APPEND_TIME
        object.__setattr__(self, "stamps", stamps)
        object.__setattr__(self, "places_only", self.origin is Origin.CLIENT and not stamps)
        object.__setattr__(self, "limits", (self.max_message_bytes, self.timestamp_after_max_ms, stamps))


class CheckedBatch(NamedTuple):
    data: memoryview  # the producer's own bytes, or new ones
    header: BatchHeader
    max_timestamp: int


class CheckedRecords(NamedTuple):
    """Batches that passed these rules, and have no offsets yet."""

    batches: list[CheckedBatch]
    rules: BatchRules
    now_ms: int


_CHECKED_TYPES: Final = (CheckedRecords, CheckedBatch, BatchHeader)


class ValidatedBatches(NamedTuple):
    """Bytes that may be written, and facts about them for the log."""

    data: memoryview
    batches: list[BatchInfo]
    max_timestamp: int
    log_append_time: int  # -1 when records keep their producer's time


def check_produce_records(records: memoryview, api_version: int) -> None:
    """Check the rules of the request's version: from 3 on exactly one batch of magic 2; zstd from 7 on."""
    if api_version < _FIRST_PRODUCE_VERSION_OF_MAGIC_2:
        return
    if len(records) <= MAGIC_AT:
        raise _invalid(f"Produce requests with version {api_version} must have at least one record batch per partition")
    if records[MAGIC_AT] != MAGIC:
        raise _invalid(f"Produce requests with version {api_version} may only have record batches of magic {MAGIC}")
    size = batch_size(records)
    if api_version < _FIRST_PRODUCE_VERSION_OF_ZSTD and read_header(records).attributes & CODEC_MASK == Codec.ZSTD:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Produce requests with version {api_version} may not use zstd"
        )
    if size < len(records):
        raise _invalid(f"Produce requests with version {api_version} must have exactly one record batch per partition")


def check_records(
    records: memoryview,
    *,
    rules: BatchRules,
    now_ms: int,
    budget: CheckBudget = UNBOUNDED,
    api_version: int = NO_PRODUCE,
) -> CheckedRecords:
    """Check everything that does not depend on the log's state; this is the long part, to be done outside of locks.
    Raises KafkaError, or what the budget raises when it is spent. `api_version`: of the Produce that they came with."""
    if api_version < _FIRST_PRODUCE_VERSION_OF_ZSTD:
        check_produce_records(records, api_version)
    steps_left = budget.left - BATCH_STEPS
    if compiled is not None and rules.keeps_batches and steps_left >= 0:
        found = compiled.check_batch(_CHECKED_TYPES, rules, rules.limits, records, now_ms, steps_left)
        if found is not None:
            usual, steps = found
            if steps >= 0:
                budget.begin_batch(steps)
            else:
                budget.begin_batch()
                _count_compressed(records, usual.batches[0].header, rules, budget)
            return usual
    budget.begin_batch()
    if api_version != NO_PRODUCE:  # for what the inner loop answers for, it holds
        check_produce_records(records, api_version)
    if len(records) <= MAGIC_AT:
        raise _invalid(f"Records of {len(records)} bytes have no batch")
    if records[MAGIC_AT] < MAGIC:
        return CheckedRecords([_convert(records, rules, now_ms, budget)], rules, now_ms)
    header = read_header(records)
    if header.length + LOG_OVERHEAD == len(records) and header.magic == MAGIC:  # as it nearly always is
        if rules.origin is Origin.COORDINATOR and rules.compression_type is None:
            return CheckedRecords([_own_batch(records, header, rules, now_ms)], rules, now_ms)
        return CheckedRecords([_check_batch(records, header, rules, now_ms, budget)], rules, now_ms)
    checked: list[CheckedBatch] = []
    for pos, header in batches(records):
        if pos and rules.origin is Origin.CLIENT:
            raise _invalid("More than one record batch")
        batch = records[pos : pos + header.length + LOG_OVERHEAD]
        checked.append(_check_batch(batch, header, rules, now_ms, budget))
    return CheckedRecords(checked, rules, now_ms)


def _own_batch(batch: memoryview, header: BatchHeader, rules: BatchRules, now_ms: int) -> CheckedBatch:
    """Check a batch that this broker has just made: valid, but perhaps too large."""
    if len(batch) > rules.max_message_bytes:
        raise _too_large(len(batch), rules)
    stamps = rules.stamps
    return CheckedBatch(batch, header, now_ms if stamps else header.max_timestamp)


def _check_batch(
    batch: memoryview, header: BatchHeader, rules: BatchRules, now_ms: int, budget: CheckBudget
) -> CheckedBatch:
    """Check one batch, from the first byte to the last."""
    _check_header(batch, header, rules)
    recompresses = rules.compression_type is not None and _needs_another_codec(header, rules)
    newest = oldest = header.max_timestamp
    stamped = header.attributes & LOG_APPEND_TIME_BIT != 0
    if recompresses or rules.asks_about_records:
        span = _walk(batch, header, rules, budget)
        if not stamped:
            newest = header.base_timestamp + span.max_timestamp_delta
            oldest = header.base_timestamp + span.min_timestamp_delta
    elif header.attributes & CODEC_MASK:
        _count_compressed(batch, header, rules, budget)
    else:
        budget.charge(header.record_count * LENGTH_STEPS)
        count_records(batch[HEADER_SIZE:], header.record_count, budget.charge)
    _check_time_range(oldest, newest, stamped, rules, now_ms, lambda: _decoded(batch, header, rules, budget))
    if rules.timestamp_type is TimestampType.LOG_APPEND_TIME:
        newest = now_ms
    if recompresses:
        batch = _recompress(batch, header, rules, budget)
        header = read_header(batch)
    return CheckedBatch(batch, header, newest)


def assign_offsets(checked: CheckedRecords, *, next_offset: int, leader_epoch: int) -> ValidatedBatches:
    """Assign offsets from `next_offset` on to the batches, in place."""
    rules = checked.rules
    infos: list[BatchInfo] = []
    offset, position = next_offset, 0
    stamps = rules.stamps
    for batch, header, newest in checked.batches:
        if stamps or newest != header.max_timestamp or header.attributes & LOG_APPEND_TIME_BIT:
            header = set_max_timestamp(batch, 0, header, rules.timestamp_type, newest)
        info = compiled and compiled.place_batch(BatchInfo, batch, offset, leader_epoch, position)
        if not info:
            assign(batch, 0, offset, leader_epoch)
            info = batch_info(header, offset, position)
        infos.append(info)
        offset = info.last_offset + 1
        position += info.size
    data, max_timestamp = checked.batches[0].data, infos[0].max_timestamp
    if len(infos) > 1:
        data = memoryview(b"".join(batch.data for batch in checked.batches))
        max_timestamp = max(info.max_timestamp for info in infos)
    return ValidatedBatches(data, infos, max_timestamp, checked.now_ms if stamps else NO_TIMESTAMP)


def _check_header(batch: memoryview, header: BatchHeader, rules: BatchRules) -> None:
    """Check the header alone, and the checksum."""
    base_offset, length, _, _, _, attributes, delta, _, _, producer_id, _, sequence, count = header
    size = length + LOG_OVERHEAD
    if size > rules.max_message_bytes:
        raise _too_large(size, rules)
    check_crc(batch, 0, header)
    if rules.origin is Origin.CLIENT:
        if base_offset != 0:
            raise _invalid(f"The base offset of a produced batch is {base_offset}, not 0")
        if attributes & CONTROL_BIT:
            raise _invalid("Clients are not allowed to write control records")
        if producer_id >= 0 and sequence < 0:
            raise _invalid(f"Sequence {sequence} in a batch of producer {producer_id}")
    if count <= 0 or count != delta + 1:
        raise _invalid(f"{count} records and a last offset delta of {delta} don't agree")
    if count * MIN_RECORD_SIZE > size - HEADER_SIZE and not attributes & CODEC_MASK:
        raise _invalid(f"{count} records don't fit into {size - HEADER_SIZE} bytes")


def _walk(batch: memoryview, header: BatchHeader, rules: BatchRules, budget: CheckBudget) -> RecordSpan:
    """Walk over every field of every record."""
    data = budget.plain_payload(batch, header, max_decompressed=rules.max_decompressed_bytes)
    budget.charge(_records_at_most(header, data) * FIELDS_STEPS)
    span = walk_records(data, header.record_count, budget.charge)
    if rules.compacted and span.keyless and not header.attributes & CONTROL_BIT:
        raise keyless(_decoded(batch, header, rules, budget))
    return span


def _records_at_most(header: BatchHeader, data: Buffer) -> int:
    return min(header.record_count, len(data) // MIN_RECORD_SIZE)


def _decoded(batch: memoryview, header: BatchHeader, rules: BatchRules, budget: CheckBudget) -> Iterable[Record]:
    """Decode the records, to find those at fault."""
    budget.charge(min(header.record_count, SEARCHED_MAX) * DECODING_STEPS)
    data = budget.plain_payload(batch, header, max_decompressed=rules.max_decompressed_bytes)
    return read_plain_records(bytes(data), header)


def _count_compressed(batch: memoryview, header: BatchHeader, rules: BatchRules, budget: CheckBudget) -> None:
    if rules.verify_records is not RecordCheck.HEADER:
        data = budget.plain_payload(batch, header, max_decompressed=rules.max_decompressed_bytes)
        budget.charge(_records_at_most(header, data) * LENGTH_STEPS)
        count_records(data, header.record_count, budget.charge)
    elif header.attributes & CODEC_MASK > Codec.ZSTD:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Unknown compression codec {header.attributes & CODEC_MASK}"
        )


def _check_time_range(
    oldest: int,
    newest: int,
    log_append_time: bool,
    rules: BatchRules,
    now_ms: int,
    records: Callable[[], Iterable[Record]],
) -> None:
    if rules.timestamp_type is TimestampType.CREATE_TIME and newest != NO_TIMESTAMP:
        # A record without a timestamp among others is not too old.
        too_old = oldest != NO_TIMESTAMP and now_ms - oldest > rules.timestamp_before_max_ms
        # The last says that the sum of base and delta is no timestamp at all.
        if too_old or newest - now_ms > rules.timestamp_after_max_ms or newest > NO_LIMIT_MS or oldest < -NO_LIMIT_MS:
            raise out_of_time(records(), now_ms - rules.timestamp_before_max_ms, now_ms + rules.timestamp_after_max_ms)
    elif log_append_time:
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, "Producers should not set the timestamp type to LogAppendTime")


def _needs_another_codec(header: BatchHeader, rules: BatchRules) -> bool:
    if header.attributes & CODEC_MASK == rules.compression_type:
        return False
    # Control records are written plain, and stay so.
    return bool(header.attributes & CODEC_MASK) or not header.attributes & CONTROL_BIT


def _recompress(batch: memoryview, header: BatchHeader, rules: BatchRules, budget: CheckBudget) -> memoryview:
    """Compress the same records, byte for byte, with the topic's codec."""
    codec = Codec.NONE if rules.compression_type is None else rules.compression_type
    plain = bytes(budget.plain_payload(batch, header, max_decompressed=rules.max_decompressed_bytes))
    level = rules.compression_level
    budget.charge_compression(codec, len(plain), level)
    attributes = header.attributes & ~CODEC_MASK | codec
    rebuilt = pack_batch(header._replace(attributes=attributes), compress(codec, plain, level))
    if len(rebuilt) > rules.max_message_bytes:
        raise _too_large(len(rebuilt), rules)
    return memoryview(rebuilt)


def _convert(records: memoryview, rules: BatchRules, now_ms: int, budget: CheckBudget) -> CheckedBatch:
    """Convert a message set of magic 0 or 1 to one batch of magic 2: producers add nothing older to a log."""
    messages = read_message_set(
        records,
        max_message_bytes=rules.max_message_bytes,
        max_decompressed=rules.max_decompressed_bytes,
        charge=budget.charge,
    )
    if rules.compacted and any(record.key is None for record in messages.records):
        raise keyless(messages.records)
    timestamps = [record.timestamp for record in messages.records]
    known = [timestamp for timestamp in timestamps if timestamp != NO_TIMESTAMP] or [NO_TIMESTAMP]
    _check_time_range(min(known), max(known), messages.log_append_time, rules, now_ms, lambda: iter(messages.records))
    batch = build_batch(
        [record._replace(offset=index) for index, record in enumerate(messages.records)],
        compression=messages.codec if rules.compression_type is None else rules.compression_type,
        log_append_time_ms=now_ms if rules.timestamp_type is TimestampType.LOG_APPEND_TIME else None,
        compression_level=rules.compression_level,
    )
    if len(batch) > rules.max_message_bytes:
        raise _too_large(len(batch), rules)
    header = read_header(batch)
    return CheckedBatch(memoryview(bytearray(batch)), header, header.max_timestamp)


def _too_large(size: int, rules: BatchRules) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The record batch size is {size} bytes which exceeds the maximum of {rules.max_message_bytes}",
    )


def _invalid(what: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, what)
