"""Offset arithmetic of the data source: limits, splits, JSON."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.apps.pipeline.source.errors import OptionError
from odradek.apps.pipeline.source.offsets import (
    OffsetRange,
    from_json,
    limited,
    packed_ranges,
    parse_offsets,
    records_of_first_batch,
    split_ranges,
    to_json,
)
from odradek.model.topology import TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
partitions = st.builds(TopicPartition, st.sampled_from(["a", "b-1"]), st.integers(0, 3))


@given(st.dictionaries(partitions, st.integers(0, 2**62)))
def test_json_there_and_back(offsets: dict[TopicPartition, int]) -> None:
    assert from_json(to_json(offsets)) == offsets


def test_a_limit_is_shared_by_what_waits() -> None:
    start, end = {A0: 0, A1: 100}, {A0: 900, A1: 200}
    assert limited(start, end, 100) == {A0: 90, A1: 110}
    assert limited(start, end, 1000) == end
    assert limited(start, end, 1) == {A0: 1, A1: 101}  # none starves
    assert limited(start, start, 1) == start


@pytest.mark.parametrize(
    ("waiting", "first", "read"),
    [(1_000_000, 10_000, 10_000), (50_000, 10_000, 250_000), (1_000_000, None, 250_000), (9_000_000, 900_000, 250_000)],
)
def test_the_first_batch_of_many_records_is_small(waiting: int, first: int | None, read: int) -> None:
    assert records_of_first_batch({A0: 7}, {A0: 7 + waiting, A1: 5}, 250_000, first) == read


@given(
    st.dictionaries(partitions, st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1), st.integers(1, 2000)
)
def test_a_limit_moves_everybody_forward(waiting: dict[TopicPartition, tuple[int, int]], limit: int) -> None:
    start = {p: first for p, (first, _) in waiting.items()}
    end = {p: first + size for p, (first, size) in waiting.items()}
    found = limited(start, end, limit)
    assert all(start[p] <= found[p] <= end[p] for p in end)
    assert all(found[p] > start[p] for p in end if end[p] > start[p])
    assert sum(found[p] - start[p] for p in end) <= limit + len(end)  # at least one of each


@given(
    st.lists(st.integers(0, 500), min_size=1, max_size=6),
    st.one_of(st.none(), st.integers(1, 40)),
    st.one_of(st.none(), st.integers(1, 200)),
)
def test_splits_cover_everything_once(sizes: list[int], min_partitions: int | None, max_records: int | None) -> None:
    ranges = [OffsetRange(TopicPartition("a", i), 10, 10 + size) for i, size in enumerate(sizes)]
    pieces = split_ranges(ranges, min_partitions, max_records)
    assert all(0 < piece.size <= (max_records or piece.size) for piece in pieces)
    for wanted in ranges:
        mine = [piece for piece in pieces if piece.partition == wanted.partition]
        assert sum(piece.size for piece in mine) == wanted.size
        assert all(a.end == b.start for a, b in pairwise(mine))


def test_large_ranges_are_cut_and_small_ones_are_not() -> None:
    pieces = split_ranges([OffsetRange(A0, 0, 1000), OffsetRange(A1, 0, 10)], 5)
    assert [(piece.partition, piece.size) for piece in pieces] == [(A0, 250)] * 4 + [(A1, 10)]


def test_a_range_above_the_limit_is_cut_into_equal_parts() -> None:
    pieces = split_ranges([OffsetRange(A0, 0, 1000), OffsetRange(A1, 0, 10)], None, 400)
    assert [(piece.partition, piece.size) for piece in pieces] == [(A0, 333), (A0, 333), (A0, 334), (A1, 10)]


@given(st.lists(st.integers(1, 500), min_size=1, max_size=6), st.one_of(st.none(), st.integers(1, 900)))
def test_tasks_have_every_range_once_and_a_partition_once(sizes: list[int], min_records: int | None) -> None:
    ranges = [OffsetRange(TopicPartition("a", i // 2), 0, size) for i, size in enumerate(sizes)]
    tasks = packed_ranges(ranges, min_records)
    assert [each for task in tasks for each in task] == ranges
    for task in tasks:
        assert len({each.partition for each in task}) == len(task)
        assert len(task) == 1 or sum(each.size for each in task) <= (min_records or 0)


def test_small_ranges_share_a_task() -> None:
    ranges = [OffsetRange(TopicPartition("a", i), 0, size) for i, size in enumerate((100, 200, 800, 50, 60))]
    assert [len(task) for task in packed_ranges(ranges, 1000)] == [2, 3]
    assert [len(task) for task in packed_ranges(ranges, None)] == [1] * 5


@pytest.mark.parametrize(
    "text", ["soon", "[]", '{"a": 1}', '{"a": {"x": 1}}', '{"a": {"0": "1"}}', '{"a": {"0": true}}']
)
def test_offsets_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="startingOffsets"):
        parse_offsets("startingOffsets", text)
