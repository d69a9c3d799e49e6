"""Producer snapshots: the producers of a partition as of one offset.

    NNNNNNNNNNNNNNNNNNNN.snapshot   version 1 (int16), CRC-32C of all that follows (uint32), count (int32), then per
                                    producer: id (int64), epoch (int16), last sequence (int32), last offset (int64),
                                    offset delta of the last batch (int32), timestamp (int64), coordinator epoch
                                    (int32), first offset of the open transaction or -1 (int64)

The name is the offset up to which the log was read into it.
"""

from collections.abc import Iterable
from itertools import starmap
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from odradek.base.checksum import crc32c

VERSION: Final = 1
PREFIX: Final = Struct(">hI")
"""Version, CRC-32C of the bytes behind it."""

COUNT: Final = Struct(">i")
ROW: Final = Struct(">qhiqiqiq")
SIZE_MIN: Final = PREFIX.size + COUNT.size


class CorruptSnapshot(Exception):
    """The file is not a whole snapshot; recovery rebuilds the producers from the log instead."""


class SnapshotRow(NamedTuple):
    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    txn_first_offset: int


RowFields: TypeAlias = tuple[int, int, int, int, int, int, int, int]
"""A row as a plain tuple: there may be a million of them."""


def write_rows(rows: Iterable[RowFields]) -> bytes:
    packed = [*starmap(ROW.pack, rows)]
    body = b"".join((COUNT.pack(len(packed)), *packed))
    return PREFIX.pack(VERSION, crc32c(body)) + body


def read_rows(data: bytes) -> list[SnapshotRow]:
    """Return the rows in the order of the file; raise CorruptSnapshot unless the file is whole."""
    if len(data) < SIZE_MIN:
        raise CorruptSnapshot(f"{len(data)} bytes")
    version, crc = PREFIX.unpack_from(data)
    if version != VERSION:
        raise CorruptSnapshot(f"version {version}")
    body = memoryview(data)[PREFIX.size :]
    if crc32c(body) != crc:
        raise CorruptSnapshot("wrong checksum")
    (count,) = COUNT.unpack_from(body)
    rows = body[COUNT.size :]
    if count < 0 or len(rows) != count * ROW.size:
        raise CorruptSnapshot(f"{count} entries in {len(rows)} bytes")
    return [SnapshotRow._make(row) for row in ROW.iter_unpack(rows)]
