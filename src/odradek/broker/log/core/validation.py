"""What a producer's bytes must be before they enter the log, and the offsets they get.

The role of Kafka's LogValidator: a function of the bytes, the topic's rules and the time; no clock, no file, no lock.
A batch of magic 2 that needs no change but its offsets is patched where it lies, in the request's own buffer, and its
records are not decoded. It is rebuilt when it can't be kept: an older format, or another codec than the topic's.

How far records are looked into:

- always, by the header: sizes, CRC, counts, attributes, the largest timestamp;
- a walk over the record lengths (`record_walk.count_records`), when not compressed always, when compressed unless
  `verify_records` is HEADER, after a bounded decompression;
- every field of every record, with FIELDS, and whenever a rule asks about single records: compacted topics need keys,
  and `message.timestamp.before.max.ms` the oldest timestamp.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import Final, NamedTuple

from odradek.base.errors import ErrorCode, KafkaError
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
    MAX_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
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
from odradek.protocol.records import DEFAULT_MAX_DECOMPRESSED, Record, plain_payload, read_records

NO_LIMIT_MS: Final = 2**63 - 1
_HOUR_MS: Final = 3_600_000
_KAFKA_MAX_MESSAGE_BYTES: Final = 1_048_588
_FIRST_PRODUCE_VERSION_OF_MAGIC_2: Final = 3
_FIRST_PRODUCE_VERSION_OF_ZSTD: Final = 7
_NAMED_RECORDS_MAX: Final = 1000


class RecordsRefused(KafkaError):
    """Some records can't be taken, and their batch with them. `why` tells which, by their places in the batch.

    No more than a thousand are named, whatever a batch is full of.
    """

    def __init__(self, code: ErrorCode, message: str, refused: Iterable[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.why = dict(islice(refused, _NAMED_RECORDS_MAX))


class Origin(Enum):
    """Who appends."""

    CLIENT = "a producer on the wire: nothing that it says is believed"
    COORDINATOR = "this broker itself: may write control batches, and several batches at once"


class RecordCheck(Enum):
    """How far to look into records that no rule asks about. The costs are of a 64 KiB batch of 100-byte records."""

    HEADER = "compressed records are taken as they are: 0.01 ms"
    LENGTHS = "there are as many as the batch says, and they fill it: 0.03 ms, compressed 0.1-0.4 ms"
    FIELDS = "each can be decoded, has the right offset, and the largest timestamp is put right: 0.6 ms more"


@dataclass(frozen=True, slots=True)
class BatchRules:
    """A topic's configuration, as far as it speaks of single batches. The defaults are Kafka's."""

    max_message_bytes: int = _KAFKA_MAX_MESSAGE_BYTES
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    timestamp_before_max_ms: int = NO_LIMIT_MS
    timestamp_after_max_ms: int = _HOUR_MS
    compression_type: Codec | None = None  # None keeps the producer's codec
    compacted: bool = False
    origin: Origin = Origin.CLIENT
    verify_records: RecordCheck = RecordCheck.LENGTHS
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED
    asks_about_records: bool = field(init=False)
    """Whether the fields of single records matter."""

    def __post_init__(self) -> None:
        asks = (
            self.compacted or self.timestamp_before_max_ms != NO_LIMIT_MS or self.verify_records is RecordCheck.FIELDS
        )
        object.__setattr__(self, "asks_about_records", asks)


class BatchInfo(NamedTuple):
    """One batch as it will lie in the log."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    position: int  # in ValidatedBatches.data
    size: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    is_transactional: bool
    is_control: bool


class CheckedBatch(NamedTuple):
    data: memoryview  # the producer's own bytes, or new ones where those can't be kept
    header: BatchHeader
    max_timestamp: int


class CheckedRecords(NamedTuple):
    """What may enter a log with these rules, and has no offsets yet."""

    batches: list[CheckedBatch]
    rules: BatchRules
    now_ms: int


class ValidatedBatches(NamedTuple):
    """Bytes that may be written, and what the log has to know about them."""

    data: memoryview
    batches: list[BatchInfo]
    max_timestamp: int
    log_append_time: int  # -1 when records keep their producer's time


def check_produce_records(records: memoryview, api_version: int) -> None:
    """From version 3 on a partition's records are exactly one batch of magic 2; zstd from version 7 on."""
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


def check_records(records: memoryview, *, rules: BatchRules, now_ms: int) -> CheckedRecords:
    """All that needs no place in the log; the long part, so whoever holds a lock does it before. Raises KafkaError."""
    if len(records) <= MAGIC_AT:
        raise _invalid(f"Records of {len(records)} bytes have no batch")
    if records[MAGIC_AT] < MAGIC:
        return CheckedRecords([_convert(records, rules, now_ms)], rules, now_ms)
    header = read_header(records)
    if header.length + LOG_OVERHEAD == len(records) and header.magic == MAGIC:  # as it nearly always is
        is_own = rules.origin is Origin.COORDINATOR and rules.compression_type is None
        check = _own_batch if is_own else _check_batch
        return CheckedRecords([check(records, header, rules, now_ms)], rules, now_ms)
    checked: list[CheckedBatch] = []
    for pos, header in batches(records):
        if pos and rules.origin is Origin.CLIENT:
            raise _invalid("More than one record batch")
        checked.append(_check_batch(records[pos : pos + header.length + LOG_OVERHEAD], header, rules, now_ms))
    return CheckedRecords(checked, rules, now_ms)


def _own_batch(batch: memoryview, header: BatchHeader, rules: BatchRules, now_ms: int) -> CheckedBatch:
    """A batch that this broker has just made: sound, and only perhaps too large."""
    if len(batch) > rules.max_message_bytes:
        raise _too_large(len(batch), rules)
    stamps = rules.timestamp_type is TimestampType.LOG_APPEND_TIME
    return CheckedBatch(batch, header, now_ms if stamps else header.max_timestamp)


def _check_batch(batch: memoryview, header: BatchHeader, rules: BatchRules, now_ms: int) -> CheckedBatch:
    """One batch, from the first byte to the last."""
    _check_header(batch, header, rules)
    recompresses = rules.compression_type is not None and _needs_another_codec(header, rules)
    newest = oldest = header.max_timestamp
    stamped = header.attributes & LOG_APPEND_TIME_BIT != 0
    if recompresses or rules.asks_about_records:
        span = _walk(batch, header, rules)
        if not stamped:
            newest = header.base_timestamp + span.max_timestamp_delta
            oldest = header.base_timestamp + span.min_timestamp_delta
    elif header.attributes & CODEC_MASK:
        _count_compressed(batch, header, rules)
    else:
        count_records(batch[HEADER_SIZE:], header.record_count)
    _check_time_range(oldest, newest, stamped, rules, now_ms, lambda: _decoded(batch, header, rules))
    if rules.timestamp_type is TimestampType.LOG_APPEND_TIME:
        newest = now_ms
    if recompresses:
        batch = _recompress(batch, header, rules)
        header = read_header(batch)
    return CheckedBatch(batch, header, newest)


def assign_offsets(checked: CheckedRecords, *, next_offset: int, leader_epoch: int) -> ValidatedBatches:
    """Gives the batches offsets from `next_offset` on, where they lie."""
    rules = checked.rules
    infos: list[BatchInfo] = []
    offset, position = next_offset, 0
    stamps = rules.timestamp_type is TimestampType.LOG_APPEND_TIME
    for batch, header, newest in checked.batches:
        assign(batch, 0, offset, leader_epoch)
        if stamps or newest != header.max_timestamp or header.attributes & LOG_APPEND_TIME_BIT:
            header = set_max_timestamp(batch, 0, header, rules.timestamp_type, newest)
        info = batch_info(header, offset, position)
        infos.append(info)
        offset = info.last_offset + 1
        position += info.size
    data, max_timestamp = checked.batches[0].data, infos[0].max_timestamp
    if len(infos) > 1:
        data = memoryview(b"".join(batch.data for batch in checked.batches))
        max_timestamp = max(info.max_timestamp for info in infos)
    return ValidatedBatches(data, infos, max_timestamp, checked.now_ms if stamps else NO_TIMESTAMP)


def batch_info(header: BatchHeader, base_offset: int, position: int) -> BatchInfo:
    """What the log has to know of the batch with this header, once it has its offsets."""
    _, length, _, _, _, attributes, delta, _, max_timestamp, producer_id, producer_epoch, sequence, _ = header
    # tuple.__new__ skips the Python-level constructor of NamedTuple: one is made per batch that is written anywhere.
    info: BatchInfo = tuple.__new__(
        BatchInfo,
        (
            base_offset,
            base_offset + delta,
            max_timestamp,
            position,
            length + LOG_OVERHEAD,
            producer_id,
            producer_epoch,
            sequence,
            sequence if sequence < 0 else (sequence + delta) & MAX_SEQUENCE,
            attributes & TRANSACTIONAL_BIT != 0,
            attributes & CONTROL_BIT != 0,
        ),
    )
    return info


def _check_header(batch: memoryview, header: BatchHeader, rules: BatchRules) -> None:
    """What the header alone and the checksum can tell."""
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


def _walk(batch: memoryview, header: BatchHeader, rules: BatchRules) -> RecordSpan:
    """Every field of every record."""
    data = plain_payload(batch, 0, header, max_decompressed=rules.max_decompressed_bytes)
    span = walk_records(data, header.record_count)
    if rules.compacted and span.keyless and not header.attributes & CONTROL_BIT:
        raise _keyless(_decoded(batch, header, rules))
    return span


def _decoded(batch: memoryview, header: BatchHeader, rules: BatchRules) -> Iterable[Record]:
    return read_records(batch, 0, header, max_decompressed=rules.max_decompressed_bytes)


def _count_compressed(batch: memoryview, header: BatchHeader, rules: BatchRules) -> None:
    if rules.verify_records is not RecordCheck.HEADER:
        data = plain_payload(batch, 0, header, max_decompressed=rules.max_decompressed_bytes)
        count_records(data, header.record_count)
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
            raise _out_of_time(records(), rules, now_ms)
    elif log_append_time:
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, "Producers should not set the timestamp type to LogAppendTime")


def _needs_another_codec(header: BatchHeader, rules: BatchRules) -> bool:
    if header.attributes & CODEC_MASK == rules.compression_type:
        return False
    # Control records are written plain, and stay so.
    return bool(header.attributes & CODEC_MASK) or not header.attributes & CONTROL_BIT


def _recompress(batch: memoryview, header: BatchHeader, rules: BatchRules) -> memoryview:
    """The same records, byte for byte, under the topic's own codec."""
    codec = Codec.NONE if rules.compression_type is None else rules.compression_type
    plain = plain_payload(batch, 0, header, max_decompressed=rules.max_decompressed_bytes)
    attributes = header.attributes & ~CODEC_MASK | codec
    rebuilt = pack_batch(header._replace(attributes=attributes), compress(codec, plain))
    if len(rebuilt) > rules.max_message_bytes:
        raise _too_large(len(rebuilt), rules)
    return memoryview(rebuilt)


def _convert(records: memoryview, rules: BatchRules, now_ms: int) -> CheckedBatch:
    """A set of magic 0 or 1 becomes one batch of magic 2: this broker's logs hold nothing older."""
    messages = read_message_set(
        records, max_message_bytes=rules.max_message_bytes, max_decompressed=rules.max_decompressed_bytes
    )
    if rules.compacted and any(record.key is None for record in messages.records):
        raise _keyless(messages.records)
    timestamps = [record.timestamp for record in messages.records]
    known = [timestamp for timestamp in timestamps if timestamp != NO_TIMESTAMP] or [NO_TIMESTAMP]
    _check_time_range(min(known), max(known), messages.log_append_time, rules, now_ms, lambda: iter(messages.records))
    batch = build_batch(
        [record._replace(offset=index) for index, record in enumerate(messages.records)],
        compression=messages.codec if rules.compression_type is None else rules.compression_type,
        log_append_time_ms=now_ms if rules.timestamp_type is TimestampType.LOG_APPEND_TIME else None,
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


def _keyless(records: Iterable[Record]) -> RecordsRefused:
    why = "A compacted topic takes no record without a key"
    return RecordsRefused(
        ErrorCode.INVALID_RECORD, why, ((place, why) for place, record in enumerate(records) if record.key is None)
    )


def _out_of_time(records: Iterable[Record], rules: BatchRules, now_ms: int) -> RecordsRefused:
    first, last = now_ms - rules.timestamp_before_max_ms, now_ms + rules.timestamp_after_max_ms
    return RecordsRefused(
        ErrorCode.INVALID_TIMESTAMP,
        f"Timestamps of records should be within [{first}, {last}]",
        (
            (place, f"Timestamp {record.timestamp} is not within [{first}, {last}]")
            for place, record in enumerate(records)
            if record.timestamp != NO_TIMESTAMP and not first <= record.timestamp <= last
        ),
    )


def _invalid(what: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, what)
