"""Jute, ZooKeeper's serialization: big-endian numbers, length-prefixed strings and buffers, counted vectors.

A length is never believed before the bytes are there, so a frame costs no more than its own size. A length of -1 stands
for null.
"""

import struct
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_NULL = _INT.pack(-1)


class MarshallingError(Exception):
    """The bytes don't match the record."""


class Reader:
    """Reads one record after the other from `data`, which stays as it is."""

    __slots__ = ("_data", "position")

    def __init__(self, data: bytes, position: int = 0) -> None:
        self._data = data
        self.position = position

    @property
    def remaining(self) -> int:
        return len(self._data) - self.position

    def _take(self, size: int) -> int:
        start = self.position
        if size < 0 or start + size > len(self._data):
            raise MarshallingError(f"{size} bytes at {start} of {len(self._data)}")
        self.position = start + size
        return start

    def int32(self) -> int:
        value: int = _INT.unpack_from(self._data, self._take(4))[0]
        return value

    def int64(self) -> int:
        value: int = _LONG.unpack_from(self._data, self._take(8))[0]
        return value

    def boolean(self) -> bool:
        return self._data[self._take(1)] != 0

    def buffer(self) -> bytes | None:
        size = self.int32()
        if size == -1:
            return None
        start = self._take(size)
        return self._data[start : start + size]

    def raw(self, size: int) -> bytes:
        start = self._take(size)
        return self._data[start : start + size]

    def string(self) -> str:
        text = self.string_or_null()
        if text is None:
            raise MarshallingError("null where a string is needed")
        return text

    def string_or_null(self) -> str | None:
        """Some clients write an empty string as null."""
        data = self.buffer()
        if data is None:
            return None
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise MarshallingError(str(error)) from error

    def vector(self, item: Callable[[], T], item_bytes_min: int) -> list[T] | None:
        """Items, or None for null. `item_bytes_min`: the least that one takes, so that a count alone costs nothing."""
        count = self.int32()
        if count == -1:
            return None
        if count < 0 or count * item_bytes_min > self.remaining:
            raise MarshallingError(f"{count} items in {self.remaining} bytes")
        return [item() for _ in range(count)]

    def strings(self) -> list[str]:
        return self.vector(self.string, 4) or []


def int32(value: int) -> bytes:
    return _INT.pack(value)


def int64(value: int) -> bytes:
    return _LONG.pack(value)


def boolean(value: bool) -> bytes:
    return b"\1" if value else b"\0"


def buffer(data: bytes | None) -> bytes:
    return _NULL if data is None else _INT.pack(len(data)) + data


def string(text: str) -> bytes:
    return buffer(text.encode())


def vector(items: Iterable[bytes]) -> bytes:
    written = list(items)
    return _INT.pack(len(written)) + b"".join(written)


def wrapped_int32(value: int) -> int:
    """Overflow as Java's int does."""
    return (value + 0x8000_0000) % 0x1_0000_0000 - 0x8000_0000
