"""The two walks say what a plain reading would say, for any mixture of lengths."""

import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.base.errors import ErrorCode, KafkaError
from odradek.protocol.record_batch import HEADER_SIZE, build_batch, pack_batch, read_header
from odradek.protocol.record_walk import count_records, walk_records
from odradek.protocol.records import Record, read_records
from opcodes import opcodes_of

lengths = st.lists(
    st.tuples(st.sampled_from([0, 1, 5, 40, 56, 57, 100, 8000, 20_000]), st.integers(1, 40)), min_size=1, max_size=8
)


def plain(sizes: list[int], **fields: bytes | None) -> bytes:
    records = [Record(i, 1000 + i % 90, fields.get("key", b"k"), b"x" * size) for i, size in enumerate(sizes)]
    return build_batch(records)[HEADER_SIZE:]


@settings(max_examples=60, deadline=None)
@given(lengths)
def test_rows_of_any_lengths_are_counted(rows: list[tuple[int, int]]) -> None:
    sizes = [size for size, times in rows for _ in range(times)]
    data = plain(sizes)
    for kind in (bytes, memoryview):
        count_records(kind(data), len(sizes))
    walk_records(data, len(sizes))
    for wrong in (len(sizes) - 1, len(sizes) + 1):
        for walk in (count_records, walk_records):
            with pytest.raises(KafkaError) as caught:
                walk(data, wrong)
            assert caught.value.code is ErrorCode.INVALID_RECORD


@settings(max_examples=200, deadline=None)
@given(lengths, st.data())
def test_one_changed_byte_gets_the_same_answer_from_both_readers(
    rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    sizes = [min(size, 100) for size, times in rows for _ in range(times)]
    changed = bytearray(plain(sizes))
    changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    header = read_header(build_batch([Record(i, 1000, b"", b"") for i in range(len(sizes))]))
    batch = pack_batch(header, changed)
    header = read_header(batch)
    try:
        offsets = [record.offset for record in read_records(batch, 0, header)]
        readable = offsets == list(range(len(sizes)))
    except KafkaError:
        readable = False
    try:
        walk_records(bytes(changed), len(sizes))
        walked = True
    except KafkaError:
        walked = False
    assert walked == readable
    if readable:
        count_records(changed, len(sizes))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 50))
def test_any_bytes_end_in_an_answer(data: bytes, count: int) -> None:
    for walk in (count_records, walk_records):
        with suppress(KafkaError):
            walk(data, count)


def test_rows_that_break_at_once_cost_no_more_than_their_bytes() -> None:
    sizes = [10, 10, 11] * 30_000
    data = plain(sizes)
    began = time.process_time()
    count_records(memoryview(data), len(sizes))
    assert time.process_time() - began < 3  # 0.05 s; a column to the end for each row would take many seconds


def test_what_is_hidden_beyond_the_count_costs_nothing() -> None:
    data = plain([10, 11] * 2) * 20_000

    def refused() -> None:
        with pytest.raises(KafkaError, match="more records than the 5 that it says it has"):
            count_records(data, 5)

    assert opcodes_of(refused) < 50_000, "ten for each of them would be far more"


def test_the_walk_reports_times_and_keys() -> None:
    records = [Record(0, 500, b"k", b""), Record(1, 200, None, b""), Record(2, 90_000, None, None)]
    span = walk_records(build_batch(records)[HEADER_SIZE:], 3)
    assert span == (-300, 89_500, 2)


@pytest.mark.parametrize("walk", [count_records, walk_records])
def test_numbers_of_32_bits_have_no_more_than_five_bytes(walk: Callable[[bytes, int], object]) -> None:
    """As for Kafka's clients: what they can't read must not be stored, and a record of nothing but long numbers takes
    long to look at."""
    body = plain([0])[1:]
    for length, taken in ((b"\x8c\x80\x80\x80\x00", True), (b"\x8c\x80\x80\x80\x80\x00", False)):
        assert len(body) == 7
        data = length.replace(b"\x8c", b"\x8e") + body
        if taken:
            walk(data, 1)
        else:
            with pytest.raises(KafkaError, match="a varint of more than 5 bytes"):
                walk(data, 1)


def test_offsets_count_from_nought() -> None:
    data = build_batch([Record(0, 0, None, None), Record(2, 0, None, None)])[HEADER_SIZE:]
    with pytest.raises(KafkaError, match="offset delta 2 in its record 1"):
        walk_records(data, 2)
