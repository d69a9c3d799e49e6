"""Batches that cost as much as their bytes allow: bombs of every codec, the smallest of pieces, records of nothing."""

import random
import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace

import cramjam

from odradek.broker.log.core.validation import BatchRules
from odradek.protocol.compression import Codec, compress
from odradek.protocol.legacy_records import build_message_set
from odradek.protocol.record_batch import build_batch, pack_batch, read_header
from odradek.protocol.records import Record, encode_record, encode_varint

NOW = 1_700_000_000_000
MEGABYTE = 1 << 20
COMPRESSED = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
PLAIN_RULES = BatchRules()
COMPACTED = replace(PLAIN_RULES, compacted=True)
ROOM = PLAIN_RULES.max_message_bytes - 100


def batch_with(payload: bytes, count: int = 1, **fields: int) -> bytes:
    """A batch whose checksum is right, whatever it says."""
    header = read_header(build_batch([Record(0, NOW, b"", b"")]))
    return bytes(pack_batch(header._replace(record_count=count, last_offset_delta=count - 1, **fields), payload))


def filled(piece: bytes) -> bytes:
    return piece * (ROOM // len(piece))


def costly_batches() -> Iterator[tuple[str, bytes, BatchRules]]:
    """With the rules of a topic that makes them cost something."""
    yield from _bombs()
    yield from _small_pieces()
    yield from _records()
    yield from _old_messages()


def _bombs() -> Iterator[tuple[str, bytes, BatchRules]]:
    chance = random.Random(1)
    words = [chance.randbytes(chance.choice((3, 4, 5))) for _ in range(64)]
    text = b"".join(chance.choice(words) for _ in range(80_000))
    for codec in COMPRESSED:
        for what, data in (("zeros", bytes(18 * MEGABYTE)), ("too many zeros", bytes(60 * MEGABYTE)), ("words", text)):
            payload = compress(codec, data)
            if len(payload) <= ROOM:
                yield f"{codec.name.lower()}: {what}", batch_with(payload, attributes=codec), PLAIN_RULES
    again = replace(PLAIN_RULES, compression_type=Codec.GZIP)
    record = encode_record(Record(0, NOW, b"", bytes(chance.choice(b"ab") for _ in range(2 * MEGABYTE))), 0, NOW)
    yield "compressed again by gzip", batch_with(compress(Codec.ZSTD, record), attributes=Codec.ZSTD), again


def _small_pieces() -> Iterator[tuple[str, bytes, BatchRules]]:
    block = bytes(cramjam.snappy.compress_raw(b"a"))
    blocks = compress(Codec.SNAPPY, b"") + filled(struct.pack(">i", len(block)) + block)[:-100]
    pieces = {
        "gzip: members": (Codec.GZIP, filled(zlib.compress(b"", wbits=31))),
        "gzip: stored blocks": (Codec.GZIP, zlib.compress(b"", wbits=31)[:10] + filled(b"\x00\x00\x00\xff\xff")[:-25]),
        "snappy: blocks": (Codec.SNAPPY, blocks),
        "snappy: copies of a byte": (Codec.SNAPPY, b"\xff\xff\x14\x00a" + filled(b"\x02\x01\x00")[:-6]),
        "lz4: frames": (Codec.LZ4, filled(compress(Codec.LZ4, b"a"))),
        "zstd: frames": (Codec.ZSTD, filled(bytes(cramjam.zstd.compress(b"a")))),
        "zstd: skipped frames": (Codec.ZSTD, filled(b"\x50\x2a\x4d\x18\0\0\0\0")),
        "zstd: blocks": (Codec.ZSTD, b"\x28\xb5\x2f\xfd\x00\x68" + filled(b"\x0a\x00\x00A")[:-8] + b"\x01\x00\x00"),
    }
    for name, (codec, payload) in pieces.items():
        yield name, batch_with(payload, attributes=codec), PLAIN_RULES


def _padded(value: int) -> bytes:
    """The number in five bytes, as long as one of 32 bits may be."""
    rest = value << 1
    return bytes([rest >> shift & 0x7F | 0x80 for shift in (0, 7, 14, 21)] + [rest >> 28])


def _slow_record(offset: int, headers: bytes = b"\x00") -> bytes:
    body = b"\x00" + _padded(0) + _padded(offset) + _padded(0) + _padded(0) + headers
    return _padded(len(body)) + body


def _records() -> Iterator[tuple[str, bytes, BatchRules]]:
    chance = random.Random(2)
    small, larger = (encode_record(Record(0, NOW, b"", value), 0, NOW) for value in (b"", b"a"))
    numbered = b"".join(encode_record(Record(n, NOW, b"", b""), 0, NOW) for n in range(400_000))
    slow = b"".join(map(_slow_record, range(60_000)))
    count = 3_000_000
    lengths = {
        "lengths: two in turn": (small + larger) * (count // 2),
        "lengths: rows of two": (small * 2 + larger) * (count // 3),
        "lengths: rows of nine": (small * 9 + larger) * (count // 10),
        "lengths: at random": b"".join(chance.choice((small, larger)) for _ in range(count // 10)) * 10,
    }
    for name, data in lengths.items():
        yield name, batch_with(compress(Codec.ZSTD, data), count, attributes=Codec.ZSTD), PLAIN_RULES
    for name, rules in (("lengths", PLAIN_RULES), ("fields", COMPACTED)):
        packed = compress(Codec.ZSTD, slow)
        yield f"{name} of five bytes", batch_with(packed, 60_000, attributes=Codec.ZSTD), rules
    packed = compress(Codec.ZSTD, numbered)
    yield "fields", batch_with(packed, 400_000, attributes=Codec.ZSTD), COMPACTED
    future = batch_with(packed, 400_000, attributes=Codec.ZSTD, max_timestamp=NOW * 2)
    yield "records from the future", future, PLAIN_RULES
    for name, header, headers in (("headers", b"\x00\x00", 500_000), ("headers of ten bytes", _padded(0) * 2, 100_000)):
        record = _slow_record(0, encode_varint(headers) + header * headers)
        yield name, batch_with(compress(Codec.ZSTD, record), attributes=Codec.ZSTD), COMPACTED


def _old_messages() -> Iterator[tuple[str, bytes, BatchRules]]:
    records = [Record(n, NOW, b"", b"") for n in range(60_000)]
    yield "old messages", build_message_set(records[:30_000], magic=1), PLAIN_RULES
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
        yield f"old messages, {codec.name.lower()}", build_message_set(records, magic=0, codec=codec), PLAIN_RULES
