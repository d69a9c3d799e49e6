"""Dirty part of a log, and the choice of the next log to compact."""

from dataclasses import replace
from pathlib import Path

from compacting import COMPACTED, Hosted, hosted
from log_building import START_MS

from odradek.broker.log.core.dirtiness import Dirtiness, assess, filthiest, first_dirty_offset, group_segments


def _filled(directory: Path, segments: int, per_segment: int = 3) -> Hosted:
    host = hosted(directory)
    for number in range(segments):
        for place in range(per_segment):
            host.put((f"k{place}", f"v{number}"), timestamp=START_MS + 1000 * number)
        host.log.roll()
    return host


def _assess(host: Hosted, *, first_dirty: int = 0, stable: int | None = None, now_ms: int = START_MS) -> Dirtiness:
    log = host.log
    end = log.log_end_offset if stable is None else stable
    return assess(log.segments, log.config, first_dirty=first_dirty, last_stable_offset=end, now_ms=now_ms)


def test_only_whole_segments_before_the_active_one_and_the_stable_offset(tmp_path: Path) -> None:
    host = _filled(tmp_path / "t-0", 3)
    host.put(("k", "in the active segment"))
    assert _assess(host).first_uncleanable == 9
    assert _assess(host, stable=9).first_uncleanable == 9
    assert _assess(host, stable=8).first_uncleanable == 6
    assert _assess(host, stable=2).first_uncleanable == 0


def test_the_ratio_is_of_bytes(tmp_path: Path) -> None:
    host = _filled(tmp_path / "t-0", 4)
    sizes = [segment.size for segment in host.log.segments]
    found = _assess(host, first_dirty=3)
    assert (found.clean_bytes, found.cleanable_bytes) == (sizes[0], sum(sizes[1:4]))
    assert found.ratio == sum(sizes[1:4]) / sum(sizes)
    assert _assess(host, first_dirty=12).ratio == 0
    assert _assess(host, first_dirty=12).cleanable_bytes == 0


def test_young_segments_wait_for_the_minimal_lag(tmp_path: Path) -> None:
    host = _filled(tmp_path / "t-0", 3)
    host.log.update_config(replace(COMPACTED, min_compaction_lag_ms=500))
    assert _assess(host, now_ms=START_MS + 1400).first_uncleanable == 3
    assert _assess(host, now_ms=START_MS + 2400).first_uncleanable == 6
    assert _assess(host, now_ms=START_MS + 9999).first_uncleanable == 9


def test_what_is_older_than_the_maximal_lag_is_worth_it_whatever_the_ratio(tmp_path: Path) -> None:
    host = _filled(tmp_path / "t-0", 3)
    host.log.update_config(replace(COMPACTED, max_compaction_lag_ms=500))
    overdue = _assess(host, first_dirty=6, now_ms=START_MS + 2700)
    assert (overdue.overdue_ms, overdue.is_worth_it(0.99)) == (200, True)
    assert not _assess(host, first_dirty=6, now_ms=START_MS + 2400).is_worth_it(0.99)
    assert not _assess(host, first_dirty=9, now_ms=START_MS + 9999).is_worth_it(0.99)


def test_a_checkpoint_that_cannot_be_of_this_log_is_not_believed() -> None:
    assert first_dirty_offset(None, 5, 100) == 5
    assert first_dirty_offset(50, 5, 100) == 50
    assert first_dirty_offset(100, 5, 100) == 100
    assert first_dirty_offset(101, 5, 100) == 5
    assert first_dirty_offset(4, 5, 100) == 5


def test_the_filthiest_of_those_that_are_worth_it_is_next() -> None:
    def dirty(clean_bytes: int, cleanable_bytes: int, overdue_ms: int = 0) -> Dirtiness:
        return Dirtiness(0, 1, clean_bytes, cleanable_bytes, overdue_ms)

    half = replace(COMPACTED, min_cleanable_dirty_ratio=0.5)
    assert filthiest([]) is None
    assert filthiest([(dirty(50, 50), half)]) is None
    assert filthiest([(dirty(40, 60), half), (dirty(10, 90), half), (dirty(0, 0), half)]) == 1
    assert filthiest([(dirty(99, 1, overdue_ms=7), half), (dirty(60, 40), half)]) == 0


def test_small_neighbours_are_grouped_up_to_the_size_of_a_segment(tmp_path: Path) -> None:
    host = _filled(tmp_path / "t-0", 5)
    segments = host.log.segments[:-1]
    size = segments[0].size
    for fitting in (1, 2, 3, 5):
        config = replace(COMPACTED, segment_bytes=size * fitting)
        groups = group_segments(segments, config, host.log.log_end_offset)
        assert [len(group) for group in groups][:-1] == [fitting] * (len(groups) - 1)
        assert [segment for group in groups for segment in group] == list(segments)
    tight = replace(COMPACTED, segment_bytes=size * 5, segment_index_bytes=0)
    assert len(group_segments(segments, tight, host.log.log_end_offset)) == 5
