"""Walks over a batch's uncompressed records without decoding: checks that they fill the batch and match its record
count.

A batch is appended as its producer made it, so a wrong count, or a record longer than its batch, would stop every
consumer at that offset forever. These loops find such batches by reading a few bytes per record.

Records of equal length often follow each other. In such a run, the bytes at one position of every record form a column,
a strided slice, which is compared at once; the result is the same as record by record.

A caller that bounds the work charges the budget for the records before the walk; additional cost of a record, for
numbers encoded longer than necessary and for headers, is charged during the walk (`Charge`).
"""

from typing import Final, NamedTuple, TypeAlias

from odradek.base.errors import ErrorCode, KafkaError
from odradek.native.load import compiled
from odradek.protocol.compression import Charge, no_charge

Buffer: TypeAlias = bytes | bytearray | memoryview

# Length, attributes, timestamp delta, offset delta, key length, value length, header count: a byte each.
MIN_RECORD_SIZE: Final = 7

# A column is taken over this many records first, and over more and more while they go on being alike: so a batch made
# to have rows that break at once costs no more than one without.
_FIRST_ROW: Final = 64
# A column costs as much as some records: after one that was in vain, the next is taken later and later.
_WORTH_A_COLUMN: Final = 8
_LONGEST_PAUSE: Final = 64
_MAX_VARINT_BYTES: Final = 10
_LONG_VARINT_STEPS: Final = 50
_HEADER_STEPS: Final = 14
_UNCHARGED_MAX: Final = 10_000
_NEGATIVE: Final = -(1 << 20)
# By the first byte of a length, zigzag: the size of the whole record, as far as that byte tells.
_SIZES: Final = tuple(
    _NEGATIVE if byte & 1 else 1 + (byte >> 1) if byte < 0x80 else 2 + (byte >> 1 & 0x3F) for byte in range(256)
)
# Single bytes of `bytes` are read twice as fast as those of a view; below this record size a copy pays.
_WORTH_A_COPY: Final = 512
_MAX_INT64: Final = 2**63 - 1
_BYTE: Final = tuple(bytes((value,)) for value in range(256))


class RecordSpan(NamedTuple):
    """Result of a full walk over a batch's records."""

    min_timestamp_delta: int
    max_timestamp_delta: int
    keyless: int


def count_records(data: Buffer, expected: int, charge: Charge = no_charge) -> None:
    """Follows the record lengths only; raises INVALID_RECORD unless `expected` records end where `data` ends."""
    if compiled is not None and (steps := compiled.count_records(data, expected)) >= 0:
        charge(steps)
        return
    if expected * _WORTH_A_COPY > len(data):
        data = bytes(data)
    at, end, count = 0, len(data), 0
    last_size, row = end // max(expected, 1), _FIRST_ROW  # a guess, and right where all are alike
    next_row, pause = 0, 1
    try:
        # No more than it says: what a batch hides beyond that costs nothing.
        while count < expected:
            first = data[at]
            size, extra = _SIZES[first], 0
            if first >= 0x80:
                second = data[at + 1]
                if second < 0x80:
                    size += second << 6
                else:
                    extra = _LONG_VARINT_STEPS
                    charge(extra)
                    length, body = _read_int(data, at)
                    size = body - at + length
            if size < MIN_RECORD_SIZE:
                raise invalid("a record without room for its fields")
            at += size
            count += 1
            if size == last_size and next_row <= count < expected:
                alike = _row_length(data, at, size, row)
                at += alike * size
                count += alike
                if extra:
                    charge(alike * extra)
                row = row * 4 if alike == row else _FIRST_ROW
                pause = 1 if alike >= _WORTH_A_COLUMN else min(2 * pause, _LONGEST_PAUSE)
                next_row = count + pause
            last_size = size
    except IndexError:
        if at == end:
            raise invalid(f"{count} records and says that it has {expected}") from None
        raise invalid("a record cut short") from None
    if at > end:
        raise invalid(f"a last record that ends {at - end} bytes after it")
    if at < end or count > expected:
        raise invalid(f"more records than the {expected} that it says it has")


def _row_length(data: Buffer, at: int, size: int, most: int) -> int:
    """Count the records in a row, at most `most`, `size` bytes apart, that are as long as the one before `at`."""
    stop = at + most * size
    alike, place = most, 0
    while True:
        prefix = data[at - size + place]
        column = bytes(data[at + place : stop : size])
        alike = min(alike, len(column) - len(column.lstrip(_BYTE[prefix])))
        if prefix < 0x80 or not alike:
            return alike
        place += 1


def walk_records(data: Buffer, expected: int, charge: Charge = no_charge) -> RecordSpan:
    """Follows every field of every record; raises INVALID_RECORD where they don't fit or offsets aren't 0, 1, 2 …"""
    if compiled is not None and (found := compiled.walk_records(data, expected)) is not None:
        charge(found[3])
        return RecordSpan(*found[:3])
    return _walk_fields(bytes(data), expected, charge)


def _walk_fields(data: bytes, expected: int, charge: Charge) -> RecordSpan:
    at, end = 0, len(data)
    low, high, keyless = _MAX_INT64, -_MAX_INT64, 0
    integer, uncharged = _read_int, 0
    try:
        for index in range(expected):
            # The loop is the cost: one-byte varints, nearly all of them, are read without a call.
            if (byte := data[at]) < 0x80:
                stop = at + 1 + (byte >> 1) if not byte & 1 else -1
                at += 2
            elif (second := data[at + 1]) < 0x80 and not byte & 1:
                stop = at + (byte >> 1) + (second << 6) - 62
                at += 3
            else:
                length, at = integer(data, at)
                stop = at + length
                at += 1
                uncharged += _LONG_VARINT_STEPS
            if not at < stop <= end:
                raise invalid(f"a record {index} that ends outside of it")
            if (byte := data[at]) < 0x80:
                delta = byte >> 1 ^ -(byte & 1)
                at += 1
            else:
                delta, at = read_varint(data, at)
                uncharged += _LONG_VARINT_STEPS
            if delta > high:
                high = delta
            if delta < low:
                low = delta
            if (byte := data[at]) < 0x80:
                delta = byte >> 1 ^ -(byte & 1)
                at += 1
            elif (second := data[at + 1]) < 0x80:
                delta = (byte & 0x7F | second << 7) >> 1 ^ -(byte & 1)
                at += 2
            else:
                delta, at = integer(data, at)
                uncharged += _LONG_VARINT_STEPS
            if delta != index:
                raise invalid(f"offset delta {delta} in its record {index}")
            if (byte := data[at]) < 0x80:
                if byte & 1:
                    keyless += 1
                    at += 1
                else:
                    at += 1 + (byte >> 1)
            else:
                size, at = integer(data, at)
                at = at + size if size >= 0 else at
                keyless += size < 0
                uncharged += _LONG_VARINT_STEPS
            if (byte := data[at]) < 0x80:
                at += 1 if byte & 1 else 1 + (byte >> 1)
            else:
                size, at = integer(data, at)
                at = at + size if size >= 0 else at
                uncharged += _LONG_VARINT_STEPS
            at = at + 1 if not data[at] else _skip_headers(data, at, stop, charge)
            if at != stop:
                raise invalid(f"fields that don't fill its record {index}")
            if uncharged > _UNCHARGED_MAX:
                charge(uncharged)
                uncharged = 0
    except IndexError:
        raise invalid("a record cut short") from None
    if at != end:
        raise invalid(f"{expected} records and {end - at} bytes more")
    charge(uncharged)
    return RecordSpan(low, high, keyless)


def _skip_headers(data: bytes, at: int, stop: int, charge: Charge) -> int:
    byte = data[at]
    count, at = (byte >> 1 ^ -(byte & 1), at + 1) if byte < 0x80 else _read_int(data, at)
    if not 0 <= count <= stop - at:
        raise invalid(f"{count} record headers in {stop - at} bytes")
    charge(count * _HEADER_STEPS)
    for _ in range(count):
        if (size := data[at]) < 0x80:
            size = size >> 1 ^ -(size & 1)
            at += 1
        else:
            charge(_LONG_VARINT_STEPS)
            size, at = _read_int(data, at)
        if size < 0:
            raise invalid("a record header without a name")
        at += size
        if (size := data[at]) < 0x80:
            size = size >> 1 ^ -(size & 1)
            at += 1
        else:
            charge(_LONG_VARINT_STEPS)
            size, at = _read_int(data, at)
        if size > 0:
            at += size
    return at


def _read_int(data: Buffer, at: int) -> tuple[int, int]:
    """A number of 32 bits that has more than one byte, and no more than five: Kafka's clients take no longer ones."""
    byte, second = data[at], data[at + 1]
    value = byte & 0x7F | (second & 0x7F) << 7
    if second < 0x80:
        return (value >> 1) ^ -(value & 1), at + 2
    for place in (2, 3, 4):
        byte = data[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at + place + 1
    raise invalid("a varint of more than 5 bytes")


def read_varint(data: Buffer, at: int) -> tuple[int, int]:
    """The zigzag varint at `at`, and where it ends. IndexError past the end of `data`."""
    byte = data[at]
    at += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at
    second = data[at]
    at += 1
    value = byte & 0x7F | (second & 0x7F) << 7
    if second < 0x80:
        return (value >> 1) ^ -(value & 1), at
    for shift in range(14, 7 * _MAX_VARINT_BYTES, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
    raise invalid(f"a varint of more than {_MAX_VARINT_BYTES} bytes")


def invalid(what: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, f"Batch has {what}")
