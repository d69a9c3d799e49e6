"""The compiled functions of record columns beside the protocol's reader, and on hostile bytes."""

import random
from array import array
from typing import Any

import pytest
from test_twins import DEFAULT_INPUTS

from odradek.native.load import compiled
from odradek.protocol.record_batch import build_batch, payload, read_header
from odradek.protocol.records import Record

pytestmark = pytest.mark.skipif(
    not hasattr(compiled, "find_records"), reason="the compiled inner loop is not built, or from before it had these"
)


def numbers(count: int) -> "array[int]":
    return array("q", bytes(8 * count))


def any_bytes(pick: random.Random) -> bytes | None:
    return None if pick.random() < 0.2 else pick.randbytes(pick.choice((0, 1, 5, 63, 64, 200)))


def any_record(pick: random.Random, offset: int) -> Record:
    headers = [("h" * pick.randrange(4), any_bytes(pick)) for _ in range(pick.choice((0, 0, 1, 3)))]
    return Record(offset, pick.randrange(2**42), any_bytes(pick), any_bytes(pick), headers)


def pieces(data: bytes, at: "array[int]", size: "array[int]", room: int) -> list[bytes | None] | None:
    """The pieces as `gather_pieces` lays them; None if it refuses."""
    library: Any = compiled
    out, ends = bytearray(room), array("i", bytes(4 * (len(at) + 1)))
    if not library.gather_pieces(data, at, size, out, ends):
        return None
    return [None if size[row] < 0 else bytes(out[ends[row] : ends[row + 1]]) for row in range(len(at))]


def check(pick: random.Random, *, is_hostile: bool) -> None:
    library: Any = compiled
    batches = [
        [any_record(pick, 100 * at + n) for n in range(pick.randrange(1, 5))] for at in range(pick.randrange(1, 4))
    ]
    stored = [build_batch(batch, base_offset=batch[0].offset) for batch in batches]
    headers = [read_header(each) for each in stored]
    bodies = [bytes(payload(each, 0, header)) for each, header in zip(stored, headers, strict=True)]
    data, ends = bytearray(b"".join(bodies)), array("q", [sum(map(len, bodies[: n + 1])) for n in range(len(bodies))])
    counts, rows = array("q", [header.record_count for header in headers]), sum(map(len, batches))
    if is_hostile:
        for _ in range(pick.randrange(1, 5)):
            data[pick.randrange(len(data))] = pick.choice((0, 0x7F, 0x80, 0xFF, pick.randrange(256)))
        data = data[: pick.choice((len(data), pick.randrange(len(data) + 1)))]
        if pick.random() < 0.3:
            counts[pick.randrange(len(counts))] = pick.choice((-1, 0, 2**62, rows + 1))
        if pick.random() < 0.3:
            ends[pick.randrange(len(ends))] = pick.choice((-1, 0, 2**62, len(data) + 1))
    found = [numbers(rows) for _ in range(8)]
    bases = [array("q", [header.base_offset for header in headers]), array("q", [h.base_timestamp for h in headers])]
    bad = library.find_records(bytes(data), ends, counts, *bases, array("q", [-1] * len(headers)), *found)
    offsets, times, key_at, key_size, value_at, value_size, headers_at, header_count = found
    if bad >= 0:
        assert is_hostile
        return
    room = len(data)
    keys, values = pieces(bytes(data), key_at, key_size, room), pieces(bytes(data), value_at, value_size, room)
    total = sum(header_count)
    spans = [numbers(min(total, 10_000)) for _ in range(4)]
    has_headers = library.find_headers(bytes(data), headers_at, header_count, *spans)
    if has_headers:
        pieces(bytes(data), spans[0], spans[1], room)
    if not is_hostile:
        records = [record for batch in batches for record in batch]
        assert [(r.offset, r.timestamp) for r in records] == list(zip(offsets, times, strict=True))
        assert [r.key for r in records] == keys
        assert [r.value for r in records] == values
        assert has_headers
        expected = [header for record in records for header in record.headers]
        assert [str(name).encode() for name, _ in expected] == pieces(bytes(data), spans[0], spans[1], room)
        assert [value for _, value in expected] == pieces(bytes(data), spans[2], spans[3], room)


def compare(seed: int, inputs: int) -> int:
    pick = random.Random(seed)
    for number in range(inputs):
        check(pick, is_hostile=number % 2 == 0)
    return inputs


def test_columns_are_the_records_and_hostile_bytes_are_not_left() -> None:
    assert compare(random.randrange(2**32), DEFAULT_INPUTS)
