"""Message sets of magic 0 and 1, which producers before Kafka 0.11 send and consumers before it ask for.

They are not kept on disk: what comes in becomes a batch of magic 2, what goes out to an old consumer is converted down.
A set is a row of messages, big-endian:

    size  field
       8  offset
       4  size of all that follows
       4  crc         CRC-32 (not CRC-32C) of all that follows
       1  magic       0 or 1
       1  attributes  bits 0-2 codec, 3 log append time (magic 1)
       8  timestamp   magic 1 only
       4  key length, -1 for none; key
       4  value length, -1 for none; value

A message with a codec is a wrapper: its value is a compressed set, its offset is that of the last message inside.
Inside, magic 1 counts offsets from the first message, magic 0 has them absolute.
"""

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from odradek.base.errors import ErrorCode, KafkaError
from odradek.protocol.compression import (
    Charge,
    Codec,
    compress,
    compress_lz4_old,
    decompress,
    decompress_lz4_old,
    no_charge,
)
from odradek.protocol.record_batch import (
    CODEC_MASK,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    NO_TIMESTAMP,
    BatchHeader,
    codec_of,
    read_header,
)
from odradek.protocol.records import Record, read_records

Buffer: TypeAlias = bytes | bytearray | memoryview

_PREFIX = Struct(">qiIbb")
_INT64 = Struct(">q")
_INT32 = Struct(">i")
_CRC_AT: Final = 12
_BODY_AT: Final = 18
_CHECKED_FROM: Final = 16
_MIN_SIZE: Final = 14
# A batch of a megabyte has a tenth of that, unless somebody wants the broker's memory to be full of records.
_CONVERTED_RECORDS_MAX: Final = 500_000
# Of decoding_steps: what it takes to read a message and to write it again, and to decompress.
_MESSAGE_STEPS: Final = 400
_UNWRAPPED_BYTES_PER_STEP: Final = 6


class LegacyMessage(NamedTuple):
    """One message of a set, wrapper or not."""

    offset: int
    size: int  # with offset and size fields
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None

    @property
    def codec(self) -> Codec:
        return codec_of(self.attributes)


class MessageSet(NamedTuple):
    """A whole set with its wrapper, if any, opened."""

    magic: int
    codec: Codec
    log_append_time: bool
    records: list[Record]


def read_message(buf: Buffer, pos: int) -> LegacyMessage:
    """The message at `pos`; its bounds, magic and checksum are right."""
    left = len(buf) - pos
    if left < LOG_OVERHEAD + _MIN_SIZE:
        raise _corrupt(f"A message needs {LOG_OVERHEAD + _MIN_SIZE} bytes, {left} left")
    offset, size, crc, magic, attributes = _PREFIX.unpack_from(buf, pos)
    end = pos + LOG_OVERHEAD + size
    if size < _MIN_SIZE or end > len(buf):
        raise _corrupt(f"Message of {size} bytes, {left - LOG_OVERHEAD} left")
    if magic not in (0, 1):
        raise _corrupt(f"Message of magic {magic} in a set of magic 0 or 1")
    view = memoryview(buf)[:end]
    computed = zlib.crc32(view[pos + _CHECKED_FROM :])
    if computed != crc:
        raise _corrupt(f"Record is corrupt (stored crc = {crc}, computed crc = {computed})")
    at, timestamp = pos + _BODY_AT, NO_TIMESTAMP
    if magic == 1:
        if end - at < _INT64.size:
            raise _corrupt("Message ends in its timestamp")
        (timestamp,) = _INT64.unpack_from(view, at)
        at += _INT64.size
    key, at = _read_bytes(view, at)
    value, at = _read_bytes(view, at)
    if at != end:
        raise _corrupt(f"Message has {end - at} bytes after its value")
    return LegacyMessage(offset, LOG_OVERHEAD + size, magic, attributes, timestamp, key, value)


def read_message_set(
    buf: Buffer, *, max_message_bytes: int, max_decompressed: int, charge: Charge = no_charge
) -> MessageSet:
    """A produced set: one magic throughout, and a wrapper comes alone. Offsets are those that the producer wrote."""
    outer: list[LegacyMessage] = []
    for message in _messages(buf):
        charge(_MESSAGE_STEPS)
        if message.size > max_message_bytes:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"The message size is {message.size} bytes which exceeds the maximum of {max_message_bytes}",
            )
        outer.append(message)
    if not outer:
        raise _invalid("Message set is empty")
    first = outer[0]
    if any(message.magic != first.magic for message in outer):
        raise _invalid(f"Messages of another magic than the first one's {first.magic}")
    if len(outer) > 1 and any(message.attributes & CODEC_MASK for message in outer):
        raise _invalid("A compressed message set has more than one wrapper")
    stamped = any(message.attributes & LOG_APPEND_TIME_BIT for message in outer) and first.magic == 1
    if not first.attributes & CODEC_MASK:
        return MessageSet(first.magic, Codec.NONE, stamped, [_record(message, message.offset) for message in outer])
    return MessageSet(
        first.magic, first.codec, stamped, unwrap(first, max_decompressed=max_decompressed, charge=charge)
    )


def unwrap(wrapper: LegacyMessage, *, max_decompressed: int, charge: Charge = no_charge) -> list[Record]:
    """The records inside a compressed message, with absolute offsets."""
    try:
        plain = _plain_value(wrapper, max_decompressed, charge)
    except KafkaError:
        charge(max_decompressed // _UNWRAPPED_BYTES_PER_STEP)  # the fault may be in the last byte
        raise
    charge(len(plain) // _UNWRAPPED_BYTES_PER_STEP)
    inner: list[LegacyMessage] = []
    for message in _messages(plain):
        charge(_MESSAGE_STEPS)
        inner.append(message)
    if not inner:
        raise _invalid("Compressed message set has no messages inside")
    if any(message.attributes & CODEC_MASK for message in inner):
        raise _invalid("Inner messages must not be compressed")
    if any(message.magic != wrapper.magic for message in inner):
        raise _invalid(f"An inner message has another magic than its wrapper's {wrapper.magic}")
    base = 0
    # Some producers leave the wrapper's offset 0: then the inner ones count from 0.
    if wrapper.magic == 1 and wrapper.offset != 0:
        base = wrapper.offset - inner[-1].offset
        if base < 0:
            raise _invalid(f"Wrapper offset {wrapper.offset} is less than the last inner one's {inner[-1].offset}")
    records = [_record(message, base + message.offset) for message in inner]
    if wrapper.magic == 1 and wrapper.attributes & LOG_APPEND_TIME_BIT:
        records = [record._replace(timestamp=wrapper.timestamp) for record in records]
    return records


def down_convert(buf: Buffer, *, magic: int, first_offset: int, max_decompressed: int) -> bytes:
    """Batches from the log as a message set of `magic` 0 or 1, for a consumer that asks from `first_offset`.

    Control batches are omitted, record headers are lost, and the old formats have no zstd. Old messages are separate,
    so an uncompressed batch is reduced to the requested offsets; some clients assume that they get only these.

    A batch that can't be converted ends the message set: the consumer takes what comes before it, asks from there, and
    gets the KafkaError then.
    """
    parts: list[Buffer] = []
    pos = 0
    while (size := _whole_size(buf, pos)) is not None:
        try:
            parts.append(_down_convert_part(memoryview(buf)[pos : pos + size], magic, first_offset, max_decompressed))
        except KafkaError:
            if not any(map(len, parts)):
                raise
            break
        pos += size
    return b"".join(parts)


def build_message_set(
    records: list[Record], *, magic: int, codec: Codec = Codec.NONE, log_append_time_ms: int | None = None
) -> bytes:
    """The records as a message set of `magic`, in one wrapper if there is a `codec`. Headers are lost."""
    if not records:
        return b""
    attributes = LOG_APPEND_TIME_BIT if log_append_time_ms is not None and magic == 1 else 0
    if codec is Codec.NONE:
        return b"".join([_encode(record, record.offset, magic, attributes) for record in records])
    base = records[0].offset if magic == 1 else 0
    inner = b"".join([_encode(record, record.offset - base, magic, attributes) for record in records])
    timestamp = max(record.timestamp for record in records) if log_append_time_ms is None else log_append_time_ms
    value = compress_lz4_old(inner) if codec is Codec.LZ4 and magic == 0 else compress(codec, inner)
    return _encode(Record(0, timestamp, None, value), records[-1].offset, magic, attributes | codec)


def _down_convert_part(buf: memoryview, magic: int, first_offset: int, max_decompressed: int) -> Buffer:
    if buf[MAGIC_AT] <= magic:
        return buf
    if buf[MAGIC_AT] < MAGIC:
        return _down_convert_message(read_message(buf, 0), magic, max_decompressed)
    return _down_convert_batch(buf, read_header(buf, 0), magic, first_offset, max_decompressed)


def _down_convert_batch(
    buf: Buffer, header: BatchHeader, magic: int, first_offset: int, max_decompressed: int
) -> bytes:
    if header.is_control:
        return b""
    codec = header.compression
    if codec is Codec.ZSTD:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "Down-conversion of zstandard-compressed batches is not supported"
        )
    if header.record_count > _CONVERTED_RECORDS_MAX:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE, f"A batch of {header.record_count} records is too large for down-conversion"
        )
    records = list(read_records(buf, 0, header, max_decompressed=max_decompressed))
    if codec is Codec.NONE:
        records = [record for record in records if record.offset >= first_offset]
    append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME_BIT else None
    return build_message_set(records, magic=magic, codec=codec, log_append_time_ms=append_time)


def _down_convert_message(message: LegacyMessage, magic: int, max_decompressed: int) -> bytes:
    if message.codec is Codec.NONE:
        return build_message_set([_record(message, message.offset)], magic=magic)
    return build_message_set(unwrap(message, max_decompressed=max_decompressed), magic=magic, codec=message.codec)


def _whole_size(buf: Buffer, pos: int) -> int | None:
    left = len(buf) - pos
    if left <= MAGIC_AT:
        return None
    length = int(_INT32.unpack_from(buf, pos + 8)[0])
    if length < _MIN_SIZE:
        raise _corrupt(f"Record size {length} is less than {_MIN_SIZE}")
    return length + LOG_OVERHEAD if length + LOG_OVERHEAD <= left else None


def _messages(buf: Buffer) -> Iterator[LegacyMessage]:
    pos = 0
    while pos < len(buf):
        message = read_message(buf, pos)
        yield message
        pos += message.size


def _plain_value(wrapper: LegacyMessage, max_decompressed: int, charge: Charge) -> bytes:
    codec = wrapper.codec
    if wrapper.value is None:
        raise _invalid("Compressed message has no value")
    if codec is Codec.ZSTD:
        raise _invalid(f"Message of magic {wrapper.magic} compressed with zstd")
    if codec is Codec.LZ4 and wrapper.magic == 0:
        return decompress_lz4_old(wrapper.value, max_decompressed)
    return decompress(codec, wrapper.value, max_decompressed, charge)


def _record(message: LegacyMessage, offset: int) -> Record:
    return Record(offset, message.timestamp, message.key, message.value)


def _encode(record: Record, offset: int, magic: int, attributes: int) -> bytes:
    body = bytearray((magic, attributes))
    if magic == 1:
        body += _INT64.pack(record.timestamp)
    for field in (record.key, record.value):
        body += _INT32.pack(-1 if field is None else len(field))
        body += field or b""
    return _INT64.pack(offset) + _INT32.pack(len(body) + 4) + zlib.crc32(body).to_bytes(4, "big") + body


def _read_bytes(view: memoryview, at: int) -> tuple[bytes | None, int]:
    """A nullable field of `view`, which ends where the message does."""
    if len(view) - at < _INT32.size:
        raise _corrupt("Message ends in a field's length")
    (size,) = _INT32.unpack_from(view, at)
    at += _INT32.size
    if size < 0:
        return None, at
    if size > len(view) - at:
        raise _corrupt(f"Message field of {size} bytes, {len(view) - at} left")
    return bytes(view[at : at + size]), at + size


def _corrupt(what: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, what)


def _invalid(what: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, what)
