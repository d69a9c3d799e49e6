"""A log after its cleaning."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from compacting import COMPACTED, Hosted, batches_of, clean, entries_of, hosted, latest_of
from hypothesis import given, settings
from hypothesis import strategies as st
from log_building import START_MS

from odradek.base.errors import KafkaError
from odradek.broker.log.compaction.cleaner import CleaningAborted
from odradek.broker.log.core.config import DAY_MS
from odradek.broker.log.core.key_map import BYTES_PER_SLOT
from odradek.broker.log.core.validation import BatchRules
from odradek.protocol.compression import Codec
from odradek.protocol.legacy_records import build_message_set
from odradek.protocol.record_batch import TimestampType, read_header
from odradek.protocol.records import ControlType, Record

LATER = START_MS + DAY_MS


def test_the_last_record_of_each_key_stays_at_its_offset(tmp_path: Path) -> None:
    host = hosted(tmp_path / "t-0")
    for number in range(20):
        host.put(("a", f"a{number}"), ("b", f"b{number}"), (f"only-{number}", "once"))
    host.log.roll()
    before = latest_of(host.log)
    stats = clean(host)
    found = entries_of(host.log)
    assert latest_of(host.log) == before
    assert [(offset, key) for offset, key, _ in found if key in "ab"] == [(57, "a"), (58, "b")]
    assert [offset for offset, key, _ in found if key.startswith("only")] == list(range(2, 60, 3))
    assert (stats.end_offset, stats.records_read, stats.records_kept, stats.keys) == (60, 60, 22, 22)
    assert len(host.log.segments) < 12  # small ones were merged


def test_a_batch_keeps_its_first_and_last_offset(tmp_path: Path) -> None:
    host = hosted(tmp_path / "t-0")
    host.put(("a", "1"), ("b", "1"), ("c", "1"), ("d", "1"))
    host.put(("a", "2"), ("d", "2"))
    host.log.roll()
    clean(host)
    (first, records), _ = batches_of(host.log)
    assert (first.base_offset, first.last_offset, first.record_count) == (0, 3, 2)
    assert [(record.offset, record.timestamp) for record in records] == [(1, START_MS + 1), (2, START_MS + 2)]
    assert (first.base_timestamp, first.max_timestamp) == (START_MS + 1, START_MS + 2)


@pytest.mark.parametrize("codec", list(Codec))
def test_compressed_batches_stay_compressed(tmp_path: Path, codec: Codec) -> None:
    host = hosted(tmp_path / "t-0")
    host.put(("a", "old"), ("b", "kept"), compression=codec)
    host.put(("a", "new"), compression=codec)
    host.log.roll()
    clean(host)
    assert entries_of(host.log) == [(1, "b", "kept"), (2, "a", "new")]
    assert {header.compression for header, _ in batches_of(host.log)} == {codec}


def test_log_append_time_stays_every_records_time(tmp_path: Path) -> None:
    host = hosted(tmp_path / "t-0")
    stamped = BatchRules(timestamp_type=TimestampType.LOG_APPEND_TIME)
    host.put(("a", "1"), ("b", "1"), timestamp=START_MS - 500, rules=stamped)
    host.put(("a", "2"))
    host.log.roll()
    clean(host)
    header, records = batches_of(host.log)[0]
    assert [(record.offset, record.timestamp) for record in records] == [(1, START_MS)]
    assert (header.timestamp_type, header.max_timestamp) == (TimestampType.LOG_APPEND_TIME, START_MS)


def test_neither_the_active_segment_nor_the_uncommitted_is_touched(tmp_path: Path) -> None:
    host = hosted(tmp_path / "t-0")
    for value in "123":
        host.put(("a", value))
        host.log.roll()
    host.put(("a", "4"))
    host.committed = 2
    assert clean(host).end_offset == 2
    assert entries_of(host.log) == [(1, "a", "2"), (2, "a", "3"), (3, "a", "4")]
    host.committed = None
    assert clean(host, first_dirty=2).end_offset == 3
    assert entries_of(host.log) == [(2, "a", "3"), (3, "a", "4")]


def test_a_tombstone_is_dated_when_first_met_and_goes_once_its_time_has_come(tmp_path: Path) -> None:
    host = hosted(tmp_path / "t-0", replace(COMPACTED, delete_retention_ms=1000))
    host.put(("a", "1"), ("b", "1"))
    host.put(("a", None))
    host.log.roll()
    end = clean(host, now_ms=LATER).end_offset
    assert entries_of(host.log) == [(1, "b", "1"), (2, "a", None)]
    header, records = batches_of(host.log)[-1]
    assert header.delete_horizon_ms == LATER + 1000
    assert records[0].timestamp == START_MS
    for at_ms, left in [(LATER + 999, [(1, "b", "1"), (2, "a", None)]), (LATER + 1000, [(1, "b", "1")])]:
        host.put(("c", str(at_ms)))
        host.log.roll()
        end = clean(host, first_dirty=end, now_ms=at_ms).end_offset
        assert entries_of(host.log)[:-1] == left
        if left[-1][2] is None:  # a second look doesn't date it anew
            assert batches_of(host.log)[-2][0].delete_horizon_ms == LATER + 1000


def test_a_map_that_gets_full_cleans_as_far_as_it_knows(tmp_path: Path) -> None:
    host = hosted(tmp_path / "t-0")
    for number in range(30):
        host.put((f"k{number % 10}", str(number)))
    host.log.roll()
    before = latest_of(host.log)
    first_dirty, rounds = 0, 0
    while first_dirty < 30:
        end = clean(host, first_dirty=first_dirty, map_bytes=6 * BYTES_PER_SLOT).end_offset
        assert end > first_dirty
        assert latest_of(host.log) == before
        first_dirty, rounds = end, rounds + 1
    assert rounds > 2
    assert len(entries_of(host.log)) == 10


def test_the_last_batch_of_a_producer_stays_for_its_sequence(tmp_path: Path) -> None:
    host = hosted(tmp_path / "t-0")
    host.put(("a", "1"), producer_id=7, producer_epoch=0, base_sequence=0)
    host.put(("a", "2"), ("b", "1"), producer_id=7, producer_epoch=0, base_sequence=1)
    host.put(("a", "3"), ("b", "2"))
    host.log.roll()
    clean(host)
    kept = [(header.base_offset, header.last_sequence, len(records)) for header, records in batches_of(host.log)]
    assert kept == [(1, 2, 0), (3, -1, 2)]
    host.log.close()
    again = hosted(tmp_path / "t-0", clean=False)
    assert again.log.producers.entries[7].last_sequence == 2
    again.put(("c", "1"), producer_id=7, producer_epoch=0, base_sequence=3)


def test_aborted_data_goes_at_once_and_its_marker_when_nobody_needs_it(tmp_path: Path) -> None:
    host = hosted(tmp_path / "t-0", replace(COMPACTED, delete_retention_ms=1000))
    host.put(("a", "committed"), producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    host.end_transaction(1, ControlType.COMMIT)
    host.put(("a", "aborted"), producer_id=2, producer_epoch=0, base_sequence=0, transactional=True)
    host.end_transaction(2, ControlType.ABORT)
    host.put(("b", "plain"))
    host.log.roll()
    host.log.producers.entries.clear()  # both producers have expired
    end = clean(host, now_ms=LATER).end_offset
    assert entries_of(host.log) == [(0, "a", "committed"), (4, "b", "plain")]
    assert [header.base_offset for header, _ in batches_of(host.log)] == [0, 1, 3, 4]
    assert [transaction.first_offset for transaction in host.log.aborted_transactions(0, 5)] == [2]
    horizons = []
    for at_ms in (LATER, LATER + 1000):
        host.put(("c", str(at_ms)))
        host.log.roll()
        end = clean(host, first_dirty=end, now_ms=at_ms).end_offset
        horizons.append({header.base_offset: header.delete_horizon_ms for header, _ in batches_of(host.log)})
        assert host.log.aborted_transactions(0, 5) == []
    assert horizons[0] == {0: None, 1: None, 3: LATER + 1000, 4: None, 5: None}
    assert horizons[1].keys() == {0, 1, 4, 6}  # the marker of the commit has data still


def test_nothing_of_an_open_transaction_nor_after_it_is_touched(tmp_path: Path) -> None:
    host = hosted(tmp_path / "t-0")
    host.put(("a", "1"))
    host.log.roll()
    host.put(("a", "2"), producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    host.log.roll()
    host.put(("a", "3"))
    host.log.roll()
    assert clean(host).end_offset == 1
    assert len(entries_of(host.log)) == 3


def test_a_truncation_meanwhile_ends_the_cleaning_and_leaves_no_trace(tmp_path: Path) -> None:
    host = hosted(tmp_path / "t-0")
    for number in range(12):
        host.put(("a", str(number)))
    host.log.roll()
    looks = 0

    def cut_at_the_fifth_look() -> bool:
        nonlocal looks
        looks += 1
        if looks == 5:
            host.log.truncate_to(6)
        return True

    with pytest.raises(CleaningAborted):
        clean(host, go_on=cut_at_the_fifth_look)
    assert host.log.log_end_offset == 6
    assert [offset for offset, _, _ in entries_of(host.log)][-1] == 5
    assert not [path for path in (tmp_path / "t-0").iterdir() if path.name.endswith((".cleaned", ".swap"))]


def test_old_formats_pass_through_and_keep_the_tombstones_after_them(tmp_path: Path) -> None:
    host = hosted(tmp_path / "t-0", replace(COMPACTED, delete_retention_ms=0))
    host.put(("a", "x"))
    host.log.roll()
    segment = host.log.segments[0]
    old = _old_message(b"a", b"of old")
    segment.path.write_bytes(old)
    segment.set_end(len(old), 1)
    host.put(("a", None))
    host.log.roll()
    end = 0
    for number in range(3):
        stats = clean(host, first_dirty=end, now_ms=LATER + number)
        assert stats.old_formats == 1
        host.put(("b", str(number)))
        host.log.roll()
        end = stats.end_offset
    first = host.log.segments[0]
    assert first.path.read_bytes()[: len(old)] == old
    tombstone = read_header(first.path.read_bytes(), len(old))
    assert (tombstone.base_offset, tombstone.record_count) == (1, 1)


def test_a_batch_that_is_not_what_was_written_stops_the_cleaning(tmp_path: Path) -> None:
    host = hosted(tmp_path / "t-0")
    host.put(("a", "first"))
    host.put(("a", "second"))
    host.log.roll()
    path = host.log.segments[0].path
    path.write_bytes(path.read_bytes().replace(b"first", b"fIrst"))
    with pytest.raises(KafkaError):
        clean(host)
    assert b"fIrst" in path.read_bytes()


def test_who_reads_an_old_segment_goes_on_reading_it(tmp_path: Path) -> None:
    host = hosted(tmp_path / "t-0")
    for number in range(40):
        host.put(("a", str(number)))
    host.log.roll()
    old = host.log.segments
    held = host.log.read(0, 1 << 20, upper_bound=40).records
    held_bytes = held.read()
    clean(host)
    assert held.read() == held_bytes
    for segment in old[:-1]:
        for offset in range(segment.base_offset, segment.end_offset):
            found = segment.read(offset, 1 << 20, 40, min_one_batch=True)
            assert found is not None
            assert read_header(found.read()).base_offset == offset


def test_readers_beside_the_cleaner_see_every_key(tmp_path: Path) -> None:
    host = hosted(tmp_path / "t-0")
    for number in range(300):
        host.put((f"k{number % 7}", str(number)))
    host.log.roll()
    done = threading.Event()
    wrong: list[object] = []
    expected = latest_of(host.log)

    def read() -> None:
        try:
            while not done.is_set():
                if latest_of(host.log) != expected:
                    wrong.append(entries_of(host.log))
        except Exception as error:
            wrong.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(5):
            clean(host)
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert not wrong


KEYS = st.sampled_from("abcde")
BATCHES = st.lists(st.tuples(KEYS, st.one_of(st.none(), st.text("xyz", max_size=3))), min_size=1, max_size=4)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(BATCHES, st.sampled_from(["roll", "clean", "reopen"])), max_size=25))
def test_compaction_never_changes_what_a_reader_of_it_all_has_in_the_end(
    tmp_path_factory: pytest.TempPathFactory, steps: list[object]
) -> None:
    directory = tmp_path_factory.mktemp("log") / "t-0"
    config = replace(COMPACTED, delete_retention_ms=10)
    host = hosted(directory, config)
    model: dict[str, str | None] = {}
    first_dirty, now_ms = 0, LATER
    for step in steps:
        now_ms += 7
        if step == "roll":
            host.log.roll()
        elif step == "clean":
            first_dirty = clean(host, first_dirty=first_dirty, now_ms=now_ms).end_offset or first_dirty
        elif step == "reopen":
            host.log.close(clean=False)
            host = Hosted(hosted(directory, config).log)
        else:
            assert isinstance(step, list)
            host.put(*step)
            model.update(step)
        assert latest_of(host.log) == {key: value for key, value in model.items() if value is not None}
    offsets = [offset for offset, _, _ in entries_of(host.log)]
    assert offsets == sorted(set(offsets))


def _old_message(key: bytes, value: bytes) -> bytes:
    return build_message_set([Record(0, START_MS, key, value)], magic=1)
