"""Compaction and transactions: aborted records go, markers outlive their records, committed values stay."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from compacting import COMPACTED, Hosted, batches_of, clean, hosted
from hypothesis import given, settings
from hypothesis import strategies as st
from log_building import START_MS

from odradek.broker.log.core.config import DAY_MS
from odradek.broker.log.core.key_map import BYTES_PER_SLOT
from odradek.protocol.aborted_batches import committed_batches
from odradek.protocol.record_batch import batches
from odradek.protocol.records import ControlType, control_key, read_records

COMMIT_KEY = control_key(ControlType.COMMIT).decode()
ABORT_KEY = control_key(ControlType.ABORT).decode()
RETENTION_MS = 10
TWO_KEYS = 3 * BYTES_PER_SLOT
"""The size of a key map that is full before the dirty part ends: KAFKA-13727, KAFKA-6854."""


def put(host: Hosted, key: str, value: str | None, producer_id: int = -1) -> None:
    fields: dict[str, object] = {}
    if producer_id >= 0:
        entry = host.log.producers.entries.get(producer_id)
        sequence = 0 if entry is None else entry.next_sequence(0)
        fields = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence, "transactional": True}
    host.put((key, value), **fields)


def committed(host: Hosted, start: int = 0) -> dict[str, str | None]:
    """Return the last value of each key that a read_committed consumer sees, if it begins at the offset."""
    log = host.log
    end = host.last_stable_offset(host.high_watermark)
    seen: dict[str, str | None] = {}
    offset = max(start, log.log_start_offset)
    while offset < end:
        found, aborted = log.read_committed(offset, 500, upper_bound=end, min_one_batch=True)
        data = found.records.read()
        placed = list(batches(data, partial_tail=True))
        if not placed:
            break
        pairs = [(each.producer_id, each.first_offset) for each in aborted]
        assert pairs == sorted(pairs, key=lambda pair: pair[1])
        for position, header in committed_batches(data, placed, pairs):
            if not header.is_control:
                for record in read_records(data, position, header):
                    if record.offset >= offset:
                        value = None if record.value is None else record.value.decode()
                        seen[(record.key or b"").decode()] = value
        offset = placed[-1][1].next_offset
    return seen


class Model:
    """Values by key as transactions end; a value counts at its offset, not at its marker's."""

    def __init__(self) -> None:
        self.records: list[tuple[int, str, str | None, int]] = []  # offset, key, value, producer id
        self.ended: dict[tuple[int, int], bool] = {}  # producer id and first offset: committed or not
        self.first: dict[int, int] = {}  # first offset of a producer's open transaction
        self.within: dict[int, tuple[int, int]] = {}  # record's offset: its transaction

    def put(self, offset: int, key: str, value: str | None, producer_id: int) -> None:
        self.records.append((offset, key, value, producer_id))
        if producer_id >= 0:
            self.within[offset] = (producer_id, self.first.setdefault(producer_id, offset))

    def end(self, producer_id: int, *, committed: bool) -> None:
        if producer_id in self.first:
            self.ended[producer_id, self.first.pop(producer_id)] = committed

    def values(self, end: int) -> dict[str, str]:
        state: dict[str, str | None] = {}
        for offset, key, value, _ in self.records:
            within = self.within.get(offset)
            if offset < end and (within is None or self.ended.get(within, False)):
                state[key] = value
        return {key: value for key, value in state.items() if value is not None}


KEYS = st.sampled_from(["a", "b", "c", COMMIT_KEY, ABORT_KEY])
VALUES = st.one_of(st.none(), st.text("xyz", max_size=3))
UPKEEP = ["roll", "clean", "clean in part", "wait", "reopen"]
STEPS = st.one_of(
    st.tuples(st.just("put"), KEYS, VALUES, st.integers(-1, 3)),
    st.tuples(st.just("put"), KEYS, VALUES, st.integers(1, 3)),
    st.tuples(st.sampled_from(["commit", "abort"]), st.just(""), st.none(), st.integers(1, 3)),
    st.tuples(
        st.sampled_from(["roll", "clean", "clean in part", "wait", "reopen"]), st.just(""), st.none(), st.just(0)
    ),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=45))
def test_compaction_never_changes_what_a_reader_of_committed_records_has_in_the_end(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, str | None, int]]
) -> None:
    directory = tmp_path_factory.mktemp("log")
    config = replace(COMPACTED, segment_bytes=300, delete_retention_ms=RETENTION_MS)
    host = hosted(directory / "t-0", config)
    model = Model()
    first_dirty, now_ms = 0, START_MS + DAY_MS
    for name, key, value, producer_id in steps:
        match name:
            case "put":
                model.put(host.log.log_end_offset, key, value, producer_id)
                put(host, key, value, producer_id)
            case "commit" | "abort":
                kind = ControlType.COMMIT if name == "commit" else ControlType.ABORT
                host.end_transaction(producer_id, kind)
                model.end(producer_id, committed=name == "commit")
            case "roll":
                host.log.roll()
            case "wait":
                now_ms += 2 * RETENTION_MS
            case "clean" | "clean in part":
                map_bytes = 1 << 16 if name == "clean" else TWO_KEYS
                stats = clean(host, first_dirty=first_dirty, now_ms=now_ms, map_bytes=map_bytes)
                first_dirty = stats.end_offset or first_dirty
            case "reopen":
                host.log.close(clean=False)
                host = Hosted(hosted(directory / "t-0", config).log)
                host.log.producers.advance_high_watermark(host.log.log_end_offset)
        stable = host.last_stable_offset(host.high_watermark)
        assert stable == min(model.first.values(), default=host.log.log_end_offset)
        seen = {key: value for key, value in committed(host).items() if value is not None}
        assert seen == model.values(stable)
        check_markers(host)
    host.log.close(clean=False)
    shutil.rmtree(directory)


def check_markers(host: Hosted) -> None:
    """Records of an ended transaction that are still there have their marker behind them."""
    stable = host.last_stable_offset(host.high_watermark)
    with_data: set[int] = set()
    for header, records in batches_of(host.log):
        if header.is_control and records:
            with_data.discard(header.producer_id)
        elif header.is_transactional and not header.is_control and records and header.last_offset < stable:
            with_data.add(header.producer_id)
    assert not with_data


def test_kafka_14055_a_user_key_never_matches_a_marker(tmp_path: Path) -> None:
    host = hosted(tmp_path / "t-0")
    put(host, "a", "1", producer_id=1)
    host.end_transaction(1, ControlType.COMMIT)
    put(host, COMMIT_KEY, "looks like a marker")
    put(host, ABORT_KEY, "this one too")
    host.log.roll()
    clean(host)
    assert [header.is_control for header, _ in batches_of(host.log)].count(True) == 1
    assert committed(host)["a"] == "1"
    assert committed(host)[COMMIT_KEY] == "looks like a marker"


def test_kafka_8351_a_transaction_over_several_groups_of_segments_keeps_its_outcome(tmp_path: Path) -> None:
    host = hosted(tmp_path / "t-0", replace(COMPACTED, segment_bytes=200))
    for number in range(12):
        put(host, f"k{number}", "aborted", producer_id=1)
        put(host, f"k{number}", "kept", producer_id=2)
    host.end_transaction(1, ControlType.ABORT)
    host.end_transaction(2, ControlType.COMMIT)
    host.log.roll()
    clean(host, buffer_bytes=128)
    assert committed(host) == {f"k{number}": "kept" for number in range(12)}


def test_kafka_13727_6854_a_key_map_that_is_full_early_loses_no_value_and_no_marker(tmp_path: Path) -> None:
    """Each cleaning ends where the map is full, also within a transaction; all of them together clean the log."""
    host = hosted(tmp_path / "t-0", replace(COMPACTED, segment_bytes=200))
    for number in range(8):
        put(host, f"k{number}", "aborted", producer_id=1)
        put(host, f"k{number}", "kept", producer_id=2)
    host.end_transaction(1, ControlType.ABORT)
    host.end_transaction(2, ControlType.COMMIT)
    host.log.roll()
    first_dirty, ends = 0, []
    while first_dirty < host.log.log_end_offset:
        stats = clean(host, first_dirty=first_dirty, map_bytes=TWO_KEYS)
        assert stats.end_offset is not None
        assert stats.end_offset > first_dirty, "each cleaning has to get on, with a buffer of any size"
        first_dirty = stats.end_offset
        ends.append(first_dirty)
        assert committed(host) == {f"k{number}": "kept" for number in range(8)}
        check_markers(host)
    assert len(ends) > 2


def test_kafka_13194_nothing_above_the_high_watermark_is_cleaned(tmp_path: Path) -> None:
    host = hosted(tmp_path / "t-0", replace(COMPACTED, segment_bytes=100))
    for number in range(6):
        put(host, "k", str(number))
    host.log.roll()
    host.committed = 3
    clean(host)
    assert [records[0].offset for _, records in batches_of(host.log)][-3:] == [3, 4, 5]


def test_a_marker_outlives_its_records_for_as_long_as_a_tombstone(tmp_path: Path) -> None:
    """A reader that has read an aborted record finds how it ended, if it comes back in time."""
    host = hosted(tmp_path / "t-0", replace(COMPACTED, delete_retention_ms=RETENTION_MS))
    put(host, "a", "1", producer_id=1)
    host.end_transaction(1, ControlType.ABORT)
    put(host, "b", "2")
    put(host, "c", "3", producer_id=1)
    host.end_transaction(1, ControlType.COMMIT)
    host.log.roll()
    now_ms = START_MS + DAY_MS

    def markers() -> int:
        return sum(1 for header, records in batches_of(host.log) if header.is_control and records)

    clean(host, now_ms=now_ms)
    assert markers() == 2, "the record goes, the marker stays"
    clean(host, now_ms=now_ms)
    assert markers() == 2, "it is dated now"
    clean(host, now_ms=now_ms + RETENTION_MS - 1)
    assert markers() == 2
    clean(host, now_ms=now_ms + RETENTION_MS)
    assert markers() == 1, "the committed one still has its record"


def test_kafka_10702_empty_markers_do_not_pile_up(tmp_path: Path) -> None:
    host = hosted(tmp_path / "t-0", replace(COMPACTED, delete_retention_ms=RETENTION_MS, segment_bytes=10_000))
    put(host, "a", "1", producer_id=1)
    for epoch in range(20):
        host.end_transaction(1, ControlType.ABORT, producer_epoch=epoch)
    put(host, "b", "2")
    host.log.roll()
    now_ms = START_MS + DAY_MS
    for _ in range(4):
        now_ms += 2 * RETENTION_MS
        clean(host, now_ms=now_ms)
    assert sum(1 for header, _ in batches_of(host.log) if header.is_control) == 1
