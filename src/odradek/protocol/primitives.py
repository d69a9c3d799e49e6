"""The wire's smallest pieces: functions that the generated code calls where straight-line code would not be shorter.

Varints, skipping of tagged fields, record payloads, arrays that messages share, and the two exceptions of the codec.
Used by `codec` and `framing`; everyone else only catches the exceptions, or makes shared arrays.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from struct import pack
from typing import TypeAlias, TypeVar
from uuid import UUID, SafeUUID

from odradek.base.file_slice import Chunk, FileSlice

ZERO_UUID = UUID(int=0)
T = TypeVar("T")

Records: TypeAlias = Chunk | Sequence[Chunk]
"""Values of a records field: decoded, always a memoryview; to be encoded, bytes, a slice of a file, or several."""

Splices: TypeAlias = list[tuple[int, FileSlice]]
"""File slices of an encoded message, each with the position in the encoded bytes that it belongs before."""

_BUFFERS = (bytes, bytearray, memoryview)
STRING_LENGTH_MAX = 0x7FFF
UNKNOWN_TAG_STEPS = 60
TAGGED_SECTION_STEPS = 15
"""Costs of a tagged field, and of a section of them, in steps of a message (`decoding_steps`)."""


class ProtocolError(Exception):
    """Bytes from the wire that are not the message they claim to be."""


class OverBudget(ProtocolError):
    """A message that would take more steps to read than it was given."""


class SharedList(list[T]):
    """An array of structs that several messages have in common, such as one update for all brokers: it is encoded for
    the first of them, and must not change after that."""

    __slots__ = ("encodings",)

    def __init__(self, items: Iterable[T] = ()) -> None:
        super().__init__(items)
        self.encodings: dict[str | int, bytes] = {}


class EncodeError(Exception):
    """A message that can't be written: the version lacks a field that it sets, or a value doesn't fit."""


def bad_length(where: str, length: int, room: int) -> ProtocolError:
    if length < 0:
        return ProtocolError(f"{where} is null, which it may not be")
    return ProtocolError(f"{where} claims a length of {length}, but only {room} bytes are left")


def over_budget(where: str, count: int) -> OverBudget:
    return OverBudget(f"{where}: {count} more are too many for one message")


def read_uvarint(buf: memoryview, pos: int) -> tuple[int, int]:
    """The number at `pos`, and the position after it. Running off the end raises IndexError."""
    byte = buf[pos]
    if byte < 0x80:
        return byte, pos + 1
    value = byte & 0x7F
    byte = buf[pos + 1]
    if byte < 0x80:
        return value | byte << 7, pos + 2
    value |= (byte & 0x7F) << 7
    byte = buf[pos + 2]
    if byte < 0x80:
        return value | byte << 14, pos + 3
    value |= (byte & 0x7F) << 14
    byte = buf[pos + 3]
    if byte < 0x80:
        return value | byte << 21, pos + 4
    last = buf[pos + 4]
    if last < 0x80:
        return value | (byte & 0x7F) << 21 | last << 28, pos + 5
    raise ProtocolError("a varint is longer than five bytes")


def read_string_length(buf: memoryview, pos: int) -> tuple[int, int]:
    """A compact length is written plus one, so that null is zero."""
    length_plus_one, pos = read_uvarint(buf, pos)
    if length_plus_one > STRING_LENGTH_MAX + 1:
        raise ProtocolError(f"a string claims {length_plus_one - 1} bytes, more than {STRING_LENGTH_MAX}")
    return length_plus_one - 1, pos


def skip_tagged_fields(buf: memoryview, pos: int, steps: int) -> tuple[int, int]:
    """Return the position after a section of unknown tagged fields, and the steps that are left."""
    count, pos = read_uvarint(buf, pos)
    check_tag_count(count, len(buf) - pos)
    steps -= count * UNKNOWN_TAG_STEPS + TAGGED_SECTION_STEPS
    if steps < 0:
        raise over_budget("tagged fields", count)
    for _ in range(count):
        _, pos, stop = read_tag(buf, pos)
        pos = stop
    return pos, steps


def check_tag_count(count: int, room: int) -> None:
    if count > room // 2:
        raise ProtocolError(f"{count} tagged fields can't fit into the {room} bytes that are left")


def read_tag(buf: memoryview, pos: int) -> tuple[int, int, int]:
    """A tag, the position of its value, and the position after its value."""
    tag, pos = read_uvarint(buf, pos)
    size, pos = read_uvarint(buf, pos)
    if size > len(buf) - pos:
        raise bad_length(f"tagged field {tag}", size, len(buf) - pos)
    return tag, pos, pos + size


@lru_cache(maxsize=4096)
def uuid_of(raw: bytes) -> UUID:
    """Cached, because a topic's id comes again with every request for it.

    Built without UUID's constructor, which checks what is certain here and takes three times as long: a request about
    all topics of a large cluster has more ids than the cache.
    """
    value = object.__new__(UUID)
    object.__setattr__(value, "int", int.from_bytes(raw, "big"))
    object.__setattr__(value, "is_safe", SafeUUID.unknown)
    return value


def put_uvarint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def put_string_length(out: bytearray, length_plus_one: int) -> None:
    if length_plus_one > STRING_LENGTH_MAX + 1:
        raise EncodeError(f"a string of {length_plus_one - 1} bytes is too long; {STRING_LENGTH_MAX} is the most")
    put_uvarint(out, length_plus_one)


def put_records(out: bytearray, records: Records | None, splices: Splices) -> None:
    if records is None:
        out += b"\xff\xff\xff\xff"
        return
    out += pack(">i", _size(records))
    _append(out, records, splices)


def put_compact_records(out: bytearray, records: Records | None, splices: Splices) -> None:
    if records is None:
        out.append(0)
        return
    put_uvarint(out, _size(records) + 1)
    _append(out, records, splices)


def _size(records: Records) -> int:
    if isinstance(records, FileSlice):
        return records.size
    if isinstance(records, _BUFFERS):
        return len(records)
    return sum(map(_size, records))


def _append(out: bytearray, records: Records, splices: Splices) -> None:
    if isinstance(records, FileSlice):
        if records.size:
            splices.append((len(out), records))
    elif isinstance(records, _BUFFERS):
        out += records
    else:
        for chunk in records:
            _append(out, chunk, splices)
