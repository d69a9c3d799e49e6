"""Offset, time and transaction index: Kafka's bytes, lookups in memory and in the file, truncation, sanity."""

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.log.files.index import CorruptIndex, OffsetIndex, TimeIndex
from odradek.broker.log.files.transaction_index import TransactionIndex
from odradek.format.transaction_index import AbortedTransaction

BASE = 5_000_000_000


def test_an_offset_entry_is_eight_bytes_relative_to_the_base(tmp_path: Path) -> None:
    index = OffsetIndex(tmp_path / "i.index", BASE, create=True)
    index.append(BASE + 7, 4100)
    index.flush()
    assert index.path.read_bytes() == struct.pack(">ii", 7, 4100)


def test_a_time_entry_is_twelve_bytes(tmp_path: Path) -> None:
    index = TimeIndex(tmp_path / "i.timeindex", BASE, create=True)
    index.maybe_append(1_700_000_000_123, BASE + 7)
    index.maybe_append(1_700_000_000_123, BASE + 9)  # not younger: no entry
    index.flush()
    assert index.path.read_bytes() == struct.pack(">qi", 1_700_000_000_123, 7)


@given(
    gaps=st.lists(st.integers(1, 50), min_size=1, max_size=900),
    probe=st.integers(-5, 50_000),
    reopen=st.booleans(),
    cut=st.none() | st.integers(0, 50_000),
)
def test_lookups_agree_with_a_plain_list(
    tmp_path_factory: pytest.TempPathFactory, gaps: list[int], probe: int, reopen: bool, cut: int | None
) -> None:
    path = tmp_path_factory.mktemp("index") / "i.index"
    index = OffsetIndex(path, BASE, create=True)
    model = []
    offset = BASE
    for number, gap in enumerate(gaps):
        offset += gap
        index.append(offset, number * 100)
        model.append((offset, number * 100))
    if cut is not None:
        index.truncate_to(BASE + cut)
        model = [entry for entry in model if entry[0] < BASE + cut]
    if reopen:
        index.flush()
        index = OffsetIndex(path, BASE)
        assert os.stat(path).st_size == 8 * len(model)
    below = [entry for entry in model if entry[0] <= BASE + probe]
    assert index.lookup(BASE + probe) == (below[-1] if below else None)
    assert index.last() == (model[-1] if model else None)
    assert len(index) == len(model)


def test_time_index_truncates_by_offset(tmp_path: Path) -> None:
    index = TimeIndex(tmp_path / "i.timeindex", BASE, create=True)
    for number in range(700):
        index.maybe_append(1000 + number, BASE + number * 10)
    index.truncate_to(BASE + 3333)
    assert index.last() == (1333, BASE + 3330)
    index.truncate_to(BASE)
    assert index.last() is None


@pytest.mark.parametrize("content", [b"\0" * 9, struct.pack(">iiii", 5, 0, 0, 0), struct.pack(">ii", 3, 5000)])
def test_an_impossible_offset_index_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "i.index"
    path.write_bytes(content)
    with pytest.raises(CorruptIndex):
        OffsetIndex(path, BASE).check(segment_size=5000)


def test_an_impossible_time_index_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "i.timeindex"
    path.write_bytes(struct.pack(">qiqi", 100, 5, 0, 0))
    with pytest.raises(CorruptIndex):
        TimeIndex(path, BASE).check()


def test_aborted_transactions(tmp_path: Path) -> None:
    index = TransactionIndex(tmp_path / "i.txnindex")
    assert index.entries() == []
    assert not index.path.exists()
    first = AbortedTransaction(producer_id=1, first_offset=10, last_offset=20, last_stable_offset=15)
    second = AbortedTransaction(producer_id=2, first_offset=15, last_offset=40, last_stable_offset=41)
    index.append(first)
    index.append(second)
    assert index.path.read_bytes()[:34] == struct.pack(">hqqqq", 0, 1, 10, 20, 15)
    assert index.overlapping(0, 12) == ([first], True)
    assert index.overlapping(21, 30) == ([second], True)
    assert index.overlapping(21, 50) == ([second], False)
    index.truncate_to(40)
    assert index.entries() == [first]
    assert index.is_sane(20)
    assert not index.is_sane(21)
