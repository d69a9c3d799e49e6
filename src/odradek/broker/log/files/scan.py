"""Iteration over the batches of a segment file: by header only, or checking every byte.

Batches of magic 2 are read as they are. A message of the older formats that an old topic may still hold is given as a
header with what it has: its offset, its size and, from magic 1, its timestamp.
"""

import os
import zlib
from collections.abc import Iterator
from struct import Struct

from odradek.base.errors import ErrorCode, KafkaError
from odradek.native.load import compiled
from odradek.protocol.record_batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    check_crc,
    read_header,
)

_HOP_BYTES = 4096 + HEADER_SIZE
_SCAN_BYTES = 1 << 20

# offset, size, crc, magic, attributes; with magic 1 a timestamp follows
_OLD_MESSAGE = Struct(">qiIbb")
_INT64 = Struct(">q")
_OLD_MIN_SIZE = 26


def header_at(buf: Buffer, pos: int) -> BatchHeader:
    """The header at `pos`; KafkaError when those bytes can't begin a batch."""
    if pos + MAGIC_AT < len(buf) and buf[pos + MAGIC_AT] < MAGIC:
        return _old_header(buf, pos)
    header = read_header(buf, pos)
    if header.magic != MAGIC:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Batch has magic {header.magic}, not {MAGIC}")
    return header


def verify(buf: Buffer, pos: int, header: BatchHeader) -> None:
    """Raise KafkaError unless the checksum matches the bytes."""
    if header.magic == MAGIC:
        check_crc(buf, pos, header)
        if header.last_offset_delta < 0:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Batch has last offset delta {header.last_offset_delta}")
    elif zlib.crc32(memoryview(buf)[pos + MAGIC_AT : pos + header.size]) != header.crc:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "Message of an old format with a wrong checksum")


def headers(fd: int, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each whole batch from `position` to `end`, reading little more than the headers."""
    chunk, start = b"", position
    while position < end:
        at = position - start
        if at + HEADER_SIZE > len(chunk):
            chunk, start, at = os.pread(fd, min(_HOP_BYTES, end - position), position), position, 0
            if len(chunk) < _OLD_MIN_SIZE:
                return
        header = header_at(chunk, at)
        if position + header.size > end:
            return
        yield position, header
        position += header.size


def checked_batches(fd: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch from the start of the file, each one's checksum proven.

    Ends at `end`; raises KafkaError at the first byte that isn't part of a whole and right batch.
    """
    position = 0
    while position < end:
        chunk = memoryview(os.pread(fd, min(_SCAN_BYTES, end - position), position))
        at = 0
        for header in compiled.sound_batches(BatchHeader, chunk, 0) if compiled is not None else ():
            yield position + at, header
            at += header.length + LOG_OVERHEAD
        while at < len(chunk):
            if len(chunk) - at < HEADER_SIZE and at and position + len(chunk) < end:
                break
            header = header_at(chunk, at)
            if at + header.size > len(chunk):
                if position + at + header.size > end:
                    raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "Batch is cut short by the end of the file")
                if at:
                    break
                chunk = memoryview(os.pread(fd, header.size, position))
            verify(chunk, at, header)
            yield position + at, header
            at += header.size
        position += at


def _old_header(buf: Buffer, pos: int) -> BatchHeader:
    if len(buf) - pos < _OLD_MIN_SIZE:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "Message of an old format is cut short")
    offset, size, crc, magic, attributes = _OLD_MESSAGE.unpack_from(buf, pos)
    if size < _OLD_MIN_SIZE - LOG_OVERHEAD or magic < 0:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Message of magic {magic} with size {size}")
    timestamp = _INT64.unpack_from(buf, pos + _OLD_MESSAGE.size)[0] if magic else NO_TIMESTAMP
    return BatchHeader(offset, size, -1, magic, crc, attributes & 0x0F, 0, timestamp, timestamp, -1, -1, -1, 1)
