"""The record batch of magic 2, as a view over bytes: its header, its checksum, its in-place patches, its builder.

A batch is a header of 61 bytes, big-endian, and then its records, which may be compressed as one piece:

    at  size  field              meaning
     0     8  base_offset        offset of the first record; the broker writes it
     8     4  length             of all that follows this field: the batch's size - 12
    12     4  leader_epoch       of the leader that appended it; the broker writes it
    16     1  magic              2
    17     4  crc                CRC-32C of everything from `attributes` to the end
    21     2  attributes         bits 0-2 codec, 3 log append time, 4 transactional, 5 control, 6 delete horizon
    23     4  last_offset_delta  last record's offset - base_offset; compaction keeps it
    27     8  base_timestamp     that record timestamps count from; with bit 6 it is the delete horizon
    35     8  max_timestamp      the largest of the records, or the log append time
    43     8  producer_id        -1 without idempotence
    51     2  producer_epoch     -1 likewise
    53     4  base_sequence      of the first record; -1 likewise
    57     4  record_count
    61        records

The checksum does not cover base offset and leader epoch, so an append patches them without a new CRC.
The offset, the length and the place of the magic byte are the same in the older formats (`legacy_records`).
"""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from odradek.base.checksum import crc32c
from odradek.base.errors import ErrorCode, KafkaError
from odradek.native.load import compiled
from odradek.protocol.compression import Codec, compress
from odradek.protocol.records import Record, encode_record

Buffer: TypeAlias = bytes | bytearray | memoryview
WritableBuffer: TypeAlias = bytearray | memoryview

HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12
MIN_LENGTH: Final = HEADER_SIZE - LOG_OVERHEAD
MAGIC: Final = 2

LENGTH_AT: Final = 8
LEADER_EPOCH_AT: Final = 12
MAGIC_AT: Final = 16
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
MAX_TIMESTAMP_AT: Final = 35
PRODUCER_ID_AT: Final = 43
RECORD_COUNT_AT: Final = 57

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1

_HEADER = Struct(">qiibIhiqqqhii")
_INT64 = Struct(">q")
_INT32 = Struct(">i")
_INT16 = Struct(">h")
_UINT32 = Struct(">I")
SEQUENCES: Final = 2**31
MAX_SEQUENCE: Final = SEQUENCES - 1

assert _HEADER.size == HEADER_SIZE


class TimestampType(IntEnum):
    """Origin of a batch's timestamps: the producer's clock or the broker's."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


def codec_of(attributes: int) -> Codec:
    """Codec of a batch or of a message of the older formats. KafkaError: there is no such codec."""
    try:
        return Codec(attributes & CODEC_MASK)
    except ValueError:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Unknown compression codec {attributes & CODEC_MASK}"
        ) from None


class BatchHeader(NamedTuple):
    """The 61 bytes, unpacked. A tuple because one is made per batch on the hot path (0.35 µs)."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Size of the whole batch, header included."""
        return self.length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequences wrap to 0 after 2^31-1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & MAX_SEQUENCE

    @property
    def compression(self) -> Codec:
        return codec_of(self.attributes)

    @property
    def is_compressed(self) -> bool:
        return self.attributes & CODEC_MASK != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType.LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_BIT else TimestampType.CREATE_TIME

    @property
    def delete_horizon_ms(self) -> int | None:
        """Time at which compaction may drop this batch's tombstones and markers, once it has set one."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None


def read_header(buf: Buffer, pos: int = 0) -> BatchHeader:
    """The header at `pos`. The batch's records need not be in `buf`; its magic and checksum are not checked."""
    if compiled is not None and (found := compiled.read_header(BatchHeader, buf, pos)) is not None:
        return found
    if pos < 0 or len(buf) - pos < HEADER_SIZE:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"A batch header needs {HEADER_SIZE} bytes, {len(buf) - pos} left")
    # tuple.__new__ skips the Python-level constructor of NamedTuple, half of the cost.
    header: BatchHeader = tuple.__new__(BatchHeader, _HEADER.unpack_from(buf, pos))
    if header.length < MIN_LENGTH:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Batch length {header.length} is less than {MIN_LENGTH}")
    return header


def batch_size(buf: Buffer) -> int:
    """Size of the batch that begins `buf`, header included, as its length field says."""
    if len(buf) < HEADER_SIZE:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"A batch header needs {HEADER_SIZE} bytes, {len(buf)} left")
    length: int = _INT32.unpack_from(buf, LENGTH_AT)[0]
    if length < MIN_LENGTH:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Batch length {length} is less than {MIN_LENGTH}")
    return length + LOG_OVERHEAD


def batches(buf: Buffer, *, partial_tail: bool = False, start: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Each batch's position and header, front to back; every batch lies wholly inside `buf` and has magic 2.

    A fetch response may end in the middle of a batch: `partial_tail` takes that as the end instead of an error.
    """
    pos, end = start, len(buf)
    while pos < end:
        if partial_tail and not _is_whole(buf, pos):
            return
        header = read_header(buf, pos)
        if header.magic != MAGIC:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Batch at byte {pos} has magic {header.magic}, not {MAGIC}")
        size = header.length + LOG_OVERHEAD
        if size > end - pos:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Batch at byte {pos} claims {size} bytes, {end - pos} left")
        yield pos, header
        pos += size


def checked_batches(buf: Buffer, *, partial_tail: bool = False) -> Iterator[tuple[int, BatchHeader]]:
    """Batches with their positions, each with a verified checksum."""
    rest = 0
    if compiled is not None:
        for header in compiled.sound_batches(BatchHeader, buf, 0):
            yield rest, header
            rest += header.length + LOG_OVERHEAD
    for pos, header in batches(buf, partial_tail=partial_tail, start=rest):
        check_crc(buf, pos, header)
        yield pos, header


def _is_whole(buf: Buffer, pos: int) -> bool:
    left = len(buf) - pos
    return left >= LOG_OVERHEAD and left >= LOG_OVERHEAD + int(_INT32.unpack_from(buf, pos + LENGTH_AT)[0])


def payload(buf: Buffer, pos: int, header: BatchHeader) -> memoryview:
    """The bytes of the batch's records, compressed or not."""
    _check_whole(buf, pos, header)
    return memoryview(buf)[pos + HEADER_SIZE : pos + header.length + LOG_OVERHEAD]


def check_crc(buf: Buffer, pos: int, header: BatchHeader) -> None:
    """Refuse a batch whose CRC-32C does not match its bytes."""
    end = pos + header.length + LOG_OVERHEAD
    if end > len(buf):
        _check_whole(buf, pos, header)
    computed = _checksum(buf, pos, header.length)
    if computed != header.crc:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"Record is corrupt (stored crc = {header.crc}, computed crc = {computed})"
        )


def assign(buf: WritableBuffer, pos: int, base_offset: int, leader_epoch: int) -> None:
    """Gives the batch its place in the log. The checksum doesn't cover these two fields."""
    _INT64.pack_into(buf, pos, base_offset)
    _INT32.pack_into(buf, pos + LEADER_EPOCH_AT, leader_epoch)


def set_max_timestamp(
    buf: WritableBuffer, pos: int, header: BatchHeader, timestamp_type: TimestampType, max_timestamp: int
) -> BatchHeader:
    """Rewrites the timestamp type and the largest timestamp, and the checksum with them, when they differ.

    Returns the header as it is now. With LOG_APPEND_TIME every record of the batch bears that time.
    """
    attributes = header.attributes & ~LOG_APPEND_TIME_BIT
    if timestamp_type is TimestampType.LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME_BIT
    if header.max_timestamp == max_timestamp and header.attributes == attributes:
        return header
    _check_whole(buf, pos, header)
    _INT16.pack_into(buf, pos + ATTRIBUTES_AT, attributes)
    _INT64.pack_into(buf, pos + MAX_TIMESTAMP_AT, max_timestamp)
    crc = _checksum(buf, pos, header.length)
    _UINT32.pack_into(buf, pos + CRC_AT, crc)
    return header._replace(attributes=attributes, max_timestamp=max_timestamp, crc=crc)


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    compression: Codec = Codec.NONE,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    log_append_time_ms: int | None = None,
    transactional: bool = False,
    control: bool = False,
    last_offset: int | None = None,
    delete_horizon_ms: int | None = None,
    compression_level: int | None = None,
) -> bytes:
    """One batch of `records`, whose offsets rise from `base_offset` (gaps allowed, as compaction leaves them).

    `last_offset` is for compaction too: the batch still covers the offsets of the removed records, even of all.
    `log_append_time_ms` makes that the time of every record instead of its own timestamp.
    """
    records = list(records)
    timestamps = [record.timestamp for record in records] or [NO_TIMESTAMP]
    base_timestamp = timestamps[0] if delete_horizon_ms is None else delete_horizon_ms
    body = b"".join([encode_record(record, base_offset, base_timestamp) for record in records])
    if last_offset is None:
        last_offset = records[-1].offset if records else base_offset - 1
    attributes = (
        compression
        | (LOG_APPEND_TIME_BIT if log_append_time_ms is not None else 0)
        | (TRANSACTIONAL_BIT if transactional else 0)
        | (CONTROL_BIT if control else 0)
        | (DELETE_HORIZON_BIT if delete_horizon_ms is not None else 0)
    )
    header = BatchHeader(
        base_offset=base_offset,
        length=0,
        leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=last_offset - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max(timestamps) if log_append_time_ms is None else log_append_time_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    return bytes(pack_batch(header, compress(compression, body, compression_level)))


def pack_batch(header: BatchHeader, body: Buffer) -> bytearray:
    """Pack the header and its records as bytes; length and checksum are computed, the ones in `header` are ignored."""
    batch = bytearray(HEADER_SIZE + len(body))
    length = len(batch) - LOG_OVERHEAD
    _HEADER.pack_into(batch, 0, *header._replace(length=length, crc=0))
    batch[HEADER_SIZE:] = body
    _UINT32.pack_into(batch, CRC_AT, _checksum(batch, 0, length))
    return batch


def _checksum(buf: Buffer, pos: int, length: int) -> int:
    start, end = pos + ATTRIBUTES_AT, pos + LOG_OVERHEAD + length
    return crc32c(memoryview(buf)[start:end]) if compiled is None else compiled.checksum(buf, start, end)


def _check_whole(buf: Buffer, pos: int, header: BatchHeader) -> None:
    # A slice past the end is silently shorter, and would be taken for the whole batch.
    if header.length + LOG_OVERHEAD > len(buf) - pos:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Batch at byte {pos} claims {header.length + LOG_OVERHEAD} bytes, {len(buf) - pos} left",
        )
