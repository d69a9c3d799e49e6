"""The four codecs of Kafka's batches, written as Kafka's own clients write them, and read with a bound on the output.

`decompress` never makes more than `limit` bytes: the length that counts is the one that comes out, not the one that
the data claims, so a small batch that unfolds into gigabytes is refused after `limit` bytes of work. It is refused as
too large, which makes Kafka's Java producer split an honest batch and send the halves. Where pieces of the input cost
something each, however little comes out of them (members of gzip, blocks of snappy), their number has a bound too, and
is charged to the work of many batches (`Charge`).

- gzip: one or more members.
- snappy: Kafka's Java clients wrap raw blocks of 32 KiB in the "xerial" stream (16 bytes of header, then length and
  block, repeatedly); librdkafka sends one raw block without it. Both are read, the first is written.
- lz4: the frame format, of blocks that stand alone. Kafka's Java clients can't read blocks that lean on the ones
  before, so those are neither written nor taken.
- zstd: one or more frames.
"""

import zlib
from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import Any, Final, TypeAlias

import cramjam

from odradek.base.errors import ErrorCode, KafkaError
from odradek.native.buffers import new_buffer

Buffer: TypeAlias = bytes | bytearray | memoryview
Charge: TypeAlias = Callable[[int], None]
"""Takes so many steps (of `decoding_steps`) from a budget, and raises an error when it is used up."""


def no_charge(steps: int) -> None:
    """Charge nothing: for work that needs no bound."""


class Codec(IntEnum):
    """Numbers of codecs in bits 0-2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_GZIP_WBITS: Final = 31
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK: Final = 32 * 1024
# No writer makes smaller blocks but for the last one. Each counts as so many bytes of the output.
_XERIAL_LEAST_BLOCK: Final = 1024
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_FLAGS_AT: Final = 4
_LZ4_CHECKSUM_AT: Final = 6
_LZ4_INDEPENDENT_BIT: Final = 0x20
_LZ4_CONTENT_SIZE_BIT: Final = 0x08
_XXH_PRIME_1: Final = 0x9E3779B1
_XXH_PRIME_2: Final = 0x85EBCA77
_XXH_PRIME_3: Final = 0xC2B2AE3D
_XXH_PRIME_4: Final = 0x27D4EB2F
_XXH_PRIME_5: Final = 0x165667B1
_UINT32_MAX: Final = 0xFFFF_FFFF
_GZIP_LEVEL: Final = -1
_LZ4_LEVEL: Final = 1
_LZ4_LEVEL_MAX: Final = 12
"""Greater ones are the same to the library: Kafka's go up to 17."""
_ZSTD_LEVEL: Final = 3
_INT32_BE = Struct(">i")
_UINT32_LE = Struct("<I")
_FIRST_GUESS_BYTES: Final = 64 * 1024
_GZIP_INPUT_BYTES: Final = 16 * 1024
# Clients write one.
_GZIP_MAX_MEMBERS: Final = 1024
_PIECE_STEPS: Final = 70


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """Compress as hard as the level says, by the codec's own scale; None: as is usual, quickly."""
    if codec is Codec.NONE:
        return bytes(data)
    if codec is Codec.GZIP:
        return zlib.compress(data, _GZIP_LEVEL if level is None else level, _GZIP_WBITS)
    if codec is Codec.SNAPPY:
        return _xerial_compress(memoryview(data))
    if codec is Codec.LZ4:
        return _lz4_compress(data, _LZ4_LEVEL if level is None else min(level, _LZ4_LEVEL_MAX))
    return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL if level is None else level))


def decompress(codec: Codec, data: Buffer, limit: int, charge: Charge = no_charge) -> bytes:
    """Decompress to at most `limit` bytes. INVALID_RECORD: not the codec's data. MESSAGE_TOO_LARGE: past `limit`."""
    return bytes(decompressed(codec, data, limit, charge))


def decompressed(codec: Codec, data: Buffer, limit: int, charge: Charge = no_charge) -> Buffer:
    """Decompress as `decompress`, into bytes or into a part of a buffer, whichever needs no copy."""
    if codec is Codec.NONE:
        if len(data) > limit:
            raise _too_large(codec, limit)
        return data
    try:
        if codec is Codec.GZIP:
            return _gunzip(memoryview(data), limit, charge)
        if codec is Codec.SNAPPY:
            return _snappy_decompress(memoryview(data), limit, charge)
        if codec is Codec.LZ4:
            _check_lz4_flags(data)
            return _decompress_within(cramjam.lz4, codec, data, limit)
        return _decompress_within(cramjam.zstd, codec, data, limit)
    except (cramjam.DecompressionError, zlib.error) as error:
        raise _not_valid(codec, str(error)) from None


def _not_valid(codec: Codec, why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, f"Records are not valid {codec.name.lower()}: {why}")


def _too_large(codec: Codec, limit: int) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE, f"Records compressed with {codec.name.lower()} unfold into more than {limit} bytes"
    )


def _gunzip(data: memoryview, limit: int, charge: Charge) -> bytes:
    """Decompress member by member, the input in small pieces, because zlib returns unused input as a copy."""
    parts: list[bytes] = []
    left, pos, members = limit, 0, 1
    member = zlib.decompressobj(wbits=_GZIP_WBITS)
    while pos < len(data):
        piece = data[pos : pos + _GZIP_INPUT_BYTES]
        part = member.decompress(piece, left + 1)
        left -= len(part)
        if left < 0:
            raise _too_large(Codec.GZIP, limit)
        parts.append(part)
        pos += len(piece) - len(member.unused_data)
        if member.eof and pos < len(data):
            if members == _GZIP_MAX_MEMBERS:
                raise zlib.error(f"more than {_GZIP_MAX_MEMBERS} members")
            members += 1
            charge(_PIECE_STEPS)
            member = zlib.decompressobj(wbits=_GZIP_WBITS)
    if not member.eof:
        raise zlib.error("incomplete stream")
    return b"".join(parts)


def _decompress_within(module: Any, codec: Codec, data: Buffer, limit: int) -> memoryview:
    """Decompress into a buffer of fixed size, then into a larger one: the decoder itself has no limit."""
    size = min(limit, max(_FIRST_GUESS_BYTES, 4 * len(data)))
    while True:
        out = new_buffer(size)
        try:
            written = module.decompress_into(data, out)
        except cramjam.DecompressionError as error:
            if "write whole buffer" not in str(error):
                raise
            if size >= limit:
                raise _too_large(codec, limit) from None
            size = min(limit, size * 4)
            continue
        return memoryview(out)[:written]


def _snappy_decompress(data: memoryview, limit: int, charge: Charge) -> bytes:
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _snappy_block(data, limit, limit)
    parts: list[bytes] = []
    left, pos, end = limit, len(_XERIAL_HEADER), len(data)
    if end < pos:
        raise cramjam.DecompressionError("stream header cut short")
    while pos < end:
        if end - pos < _INT32_BE.size:
            raise cramjam.DecompressionError("block length cut short")
        (size,) = _INT32_BE.unpack_from(data, pos)
        pos += _INT32_BE.size
        if not 0 < size <= end - pos:
            raise cramjam.DecompressionError(f"block of {size} bytes, {end - pos} left")
        charge(_PIECE_STEPS)
        parts.append(_snappy_block(data[pos : pos + size], left, limit))
        left -= max(len(parts[-1]), _XERIAL_LEAST_BLOCK)
        pos += size
    return b"".join(parts)


def _snappy_block(block: memoryview, left: int, limit: int) -> bytes:
    # A raw block begins with its length, and the decoder makes no more than that.
    size = cramjam.snappy.decompress_raw_len(block)
    if not size:
        raise cramjam.DecompressionError("an empty block")
    if size > left:
        raise _too_large(Codec.SNAPPY, limit)
    return bytes(cramjam.snappy.decompress_raw(block, output_len=size))


def _xerial_compress(data: memoryview) -> bytes:
    parts = [_XERIAL_HEADER]
    for pos in range(0, len(data), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[pos : pos + _XERIAL_BLOCK]))
        parts += (_INT32_BE.pack(len(block)), block)
    return b"".join(parts)


def _lz4_compress(data: Buffer, level: int = _LZ4_LEVEL) -> bytes:
    frame = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    frame.compress(data)
    return bytes(frame.finish())


def _check_lz4_flags(data: Buffer) -> None:
    if len(data) > _LZ4_FLAGS_AT and not data[_LZ4_FLAGS_AT] & _LZ4_INDEPENDENT_BIT:
        raise _not_valid(Codec.LZ4, "blocks depend on each other")


def compress_lz4_old(data: Buffer) -> bytes:
    """The frame as clients of message sets of magic 0 expect it: they sum its descriptor up wrongly."""
    frame = bytearray(_lz4_compress(data))
    frame[_LZ4_CHECKSUM_AT] = _descriptor_checksum(frame[:_LZ4_CHECKSUM_AT])
    return bytes(frame)


def decompress_lz4_old(data: Buffer, limit: int) -> bytes:
    """Reads what `compress_lz4_old` writes, by putting the descriptor's checksum right first."""
    frame = bytearray(data)
    if len(frame) <= _LZ4_CHECKSUM_AT or frame[:_LZ4_FLAGS_AT] != _LZ4_MAGIC:
        raise _not_valid(Codec.LZ4, "no frame")
    at = _LZ4_CHECKSUM_AT + (8 if frame[_LZ4_FLAGS_AT] & _LZ4_CONTENT_SIZE_BIT else 0)
    if len(frame) <= at:
        raise _not_valid(Codec.LZ4, "frame cut short")
    frame[at] = _descriptor_checksum(frame[_LZ4_FLAGS_AT:at])
    return decompress(Codec.LZ4, frame, limit)


def _descriptor_checksum(data: bytes | bytearray) -> int:
    """The second byte of xxHash-32 of fewer than 16 bytes, which is all that a frame's descriptor has."""
    digest = (_XXH_PRIME_5 + len(data)) & _UINT32_MAX
    words = len(data) & ~3
    for at in range(0, words, 4):
        digest = (digest + _UINT32_LE.unpack_from(data, at)[0] * _XXH_PRIME_3) & _UINT32_MAX
        digest = _rotate_left(digest, 17) * _XXH_PRIME_4 & _UINT32_MAX
    for byte in data[words:]:
        digest = (digest + byte * _XXH_PRIME_5) & _UINT32_MAX
        digest = _rotate_left(digest, 11) * _XXH_PRIME_1 & _UINT32_MAX
    digest = (digest ^ digest >> 15) * _XXH_PRIME_2 & _UINT32_MAX
    digest = (digest ^ digest >> 13) * _XXH_PRIME_3 & _UINT32_MAX
    return (digest ^ digest >> 16) >> 8 & 0xFF


def _rotate_left(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _UINT32_MAX
