"""Single records inside a batch of magic 2: reading and writing them, and the keys of control records.

A record is, with zigzag varints:

    length          of all that follows
    attributes      one byte, unused
    timestamp_delta from the batch's base_timestamp
    offset_delta    from the batch's base_offset
    key             length (-1 for none), bytes
    value           length (-1 for none: a tombstone), bytes
    headers         count, then per header: key length, key (UTF-8), value length (-1 for none), value

The broker appends and serves batches without looking at these; compaction, coordinators and tools do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from odradek.base.errors import ErrorCode, KafkaError
from odradek.native.load import compiled
from odradek.protocol.compression import Charge, decompressed, no_charge
from odradek.protocol.record_walk import invalid, read_varint

if TYPE_CHECKING:
    from odradek.protocol.record_batch import BatchHeader

Buffer: TypeAlias = bytes | bytearray | memoryview
Header: TypeAlias = tuple[str, bytes | None]

# What a batch's records may unfold into, unless the caller knows better. Far above what clients send
# (they bound a batch before compression), far below what a decompression bomb would like.
DEFAULT_MAX_DECOMPRESSED: Final = 32 * 1024 * 1024

_BATCH_HEADER_SIZE: Final = 61
_CONTROL_KEY = Struct(">hh")


class Record(NamedTuple):
    """One record, away from its batch. `value` None is a tombstone."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header] = ()


class ControlType(IntEnum):
    """Kind of a control record, by the second number of its key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4


def read_records(
    buf: Buffer, pos: int, header: BatchHeader, *, max_decompressed: int = DEFAULT_MAX_DECOMPRESSED
) -> Iterator[Record]:
    """Each record of the batch at `pos`. Raises INVALID_RECORD where the records and the header don't agree."""
    return read_plain_records(plain_payload(buf, pos, header, max_decompressed=max_decompressed), header)


def read_plain_records(data: bytes, header: BatchHeader) -> Iterator[Record]:
    """Read records that are already decompressed."""
    if compiled is not None:
        is_append_time = header.timestamp_type
        timestamp = header.max_timestamp if is_append_time else header.base_timestamp
        found = compiled.records(Record, data, header.record_count, header.base_offset, timestamp, is_append_time)
        if found is not None:
            return iter(found)
    return _read_plain_records(data, header)


def _read_plain_records(data: bytes, header: BatchHeader) -> Iterator[Record]:
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.timestamp_type else None
    at, end = 0, len(data)
    try:
        for _ in range(header.record_count):
            length, at = read_varint(data, at)
            stop = at + length
            if length < 0 or stop > end:
                raise invalid(f"a record of {length} bytes, {end - at} left")
            delta, at = read_varint(data, at + 1)
            timestamp = base_timestamp + delta if append_time is None else append_time
            delta, at = read_varint(data, at)
            key, at = _read_bytes(data, at, stop)
            value, at = _read_bytes(data, at, stop)
            count, at = read_varint(data, at)
            headers: Sequence[Header] = ()
            if count:
                headers, at = _read_headers(data, at, stop, count)
            if at != stop:
                raise invalid(f"a record of {length} bytes whose fields take {at - stop + length}")
            yield Record(base_offset + delta, timestamp, key, value, headers)
    except IndexError:
        raise invalid("a record cut short") from None
    if at != end:
        raise invalid(f"{header.record_count} records and {end - at} bytes more")


def plain_payload(
    buf: Buffer, pos: int, header: BatchHeader, *, max_decompressed: int, charge: Charge = no_charge
) -> bytes:
    """The batch's records, decompressed."""
    return bytes(plain_view(buf, pos, header, max_decompressed=max_decompressed, charge=charge))


def plain_view(
    buf: Buffer, pos: int, header: BatchHeader, *, max_decompressed: int, charge: Charge = no_charge
) -> Buffer:
    """The batch's records, decompressed as `plain_payload`, without a copy of them: for a look at their lengths."""
    stop = pos + header.size
    if stop > len(buf):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Batch of {header.size} bytes, {len(buf) - pos} left")
    data = memoryview(buf)[pos + _BATCH_HEADER_SIZE : stop]
    if not header.is_compressed:
        return data
    return decompressed(header.compression, data, max_decompressed, charge)


def encode_record(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    """The bytes of the record in a batch with that base offset and base timestamp."""
    key, value = record.key, record.value
    body = bytearray(1)
    body += encode_varint(record.timestamp - base_timestamp)
    body += encode_varint(record.offset - base_offset)
    _append_bytes(body, key)
    _append_bytes(body, value)
    body += encode_varint(len(record.headers))
    for name, header_value in record.headers:
        _append_bytes(body, name.encode())
        _append_bytes(body, header_value)
    return encode_varint(len(body)) + bytes(body)


def encode_varint(value: int) -> bytes:
    """Zigzag: 0, -1, 1, -2 … become 0, 1, 2, 3 …, then seven bits per byte, lowest first."""
    rest = value << 1 if value >= 0 else (-value << 1) - 1
    if rest < 0x80:
        return _ONE_BYTE[rest]
    out = bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


_ONE_BYTE: Final = tuple(bytes((value,)) for value in range(0x80))


def control_key(kind: ControlType, version: int = 0) -> bytes:
    return _CONTROL_KEY.pack(version, kind)


def read_control_type(key: bytes | None) -> ControlType | None:
    """Return the kind of a control record; None for an unknown kind, which readers skip."""
    try:
        version, kind = _CONTROL_KEY.unpack_from(key or b"")
    except StructError:
        raise invalid("a control record without a full key") from None
    if version < 0:
        raise invalid(f"a control record of version {version}")
    return ControlType(kind) if kind in ControlType.__members__.values() else None


def _append_bytes(out: bytearray, data: bytes | None) -> None:
    if data is None:
        out += b"\x01"
    else:
        out += encode_varint(len(data))
        out += data


def _read_bytes(data: bytes, at: int, stop: int) -> tuple[bytes | None, int]:
    size, at = read_varint(data, at)
    if size < 0:
        return None, at
    end = at + size
    if end > stop:
        raise invalid(f"a field of {size} bytes, {stop - at} left")
    return data[at:end], end


def _read_headers(data: bytes, at: int, stop: int, count: int) -> tuple[list[Header], int]:
    if not 0 < count <= stop - at:
        raise invalid(f"{count} record headers in {stop - at} bytes")
    headers: list[Header] = []
    for _ in range(count):
        name, at = _read_bytes(data, at, stop)
        if name is None:
            raise invalid("a record header without a name")
        value, at = _read_bytes(data, at, stop)
        # A name is text on the wire, but nobody checks it on the way in: reading must not fail on it.
        headers.append((name.decode(errors="replace"), value))
    return headers, at
