"""A crash at any point of putting a compacted segment in place: the next start has the old or the new, whole."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from compacting import COMPACTED, Hosted, clean, entries_of, hosted, latest_of
from log_building import open_log

from odradek.broker.log.core.config import LogConfig
from odradek.protocol.records import ControlType


def _crash_states(
    directory: Path, states: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]
) -> list[Path]:
    """The directory as it is before each change of a name while one acts, and after the last."""
    found: list[Path] = []

    def copy() -> None:
        found.append(states / str(len(found)) / directory.name)
        shutil.copytree(directory, found[-1])

    real_rename, real_unlink = os.rename, os.unlink

    def rename(source: Path, target: Path) -> None:
        copy()
        real_rename(source, target)

    def unlink(path: Path, **options: object) -> None:
        copy()
        real_unlink(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", rename)
        patched.setattr(os, "unlink", unlink)
        act()
    copy()
    return found


def _filled(directory: Path, config: LogConfig) -> Hosted:
    host = hosted(directory, config)
    for number in range(7):
        host.put(("a", f"a{number}"), (f"k{number % 3}", str(number)))
    host.put(("a", "aborted"), producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    host.end_transaction(5, ControlType.ABORT)
    host.put(("a", "last"))
    host.log.roll()
    return host


@pytest.mark.parametrize("segment_bytes", [400, 100_000])
def test_kafka_12520_every_crash_point_keeps_every_key_and_every_producer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, segment_bytes: int
) -> None:
    """Segment by segment, and all of them becoming one."""
    config = replace(COMPACTED, segment_bytes=segment_bytes)
    host = _filled(tmp_path / "t-0", replace(config, segment_bytes=400))
    host.log.update_config(config)
    before = set(entries_of(host.log))
    aborted = host.log.aborted_transactions(0, 17)
    assert len(aborted) == 1
    states = _crash_states(tmp_path / "t-0", tmp_path / "states", monkeypatch, lambda: clean(host))
    after = set(entries_of(host.log))
    assert len(after) < len(before)
    assert len(states) > 10
    for state in states:
        log = open_log(state, config)
        log.producers.advance_high_watermark(log.log_end_offset)
        assert after <= set(entries_of(log)) <= before
        assert log.log_end_offset == host.log.log_end_offset
        assert log.aborted_transactions(0, 17) == aborted
        assert log.producers.entries == host.log.producers.entries
        left = {path.name.rsplit(".", 1)[1] for path in state.iterdir()}
        assert left <= {"log", "index", "timeindex", "txnindex", "snapshot", "leader-epoch-checkpoint"}
        clean(Hosted(log))
        assert set(entries_of(log)) == after


def test_a_segment_of_which_nothing_is_left_replaces_it_at_every_crash_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = hosted(tmp_path / "t-0")
    host.put(("a", "1"), producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    host.end_transaction(5, ControlType.ABORT)
    host.put(("a", "2"))
    host.log.roll()
    host.put(("a", "3"))
    host.log.roll()
    host.log.producers.entries.clear()
    host.log.update_config(replace(COMPACTED, segment_bytes=75, delete_retention_ms=0))
    end = 0
    for number in range(2):  # the marker is dated first
        end = clean(host, first_dirty=end, now_ms=10**13).end_offset
        host.put(("b", str(number)))
        host.log.roll()
    states = _crash_states(
        tmp_path / "t-0", tmp_path / "states", monkeypatch, lambda: clean(host, first_dirty=end, now_ms=10**13)
    )
    assert host.log.segments[0].size == 0
    for state in states:
        log = open_log(state, COMPACTED)
        assert latest_of(log) == {"a": "3", "b": "1"}
        assert log.log_start_offset == 0
        if not log.segments[0].size:
            assert log.aborted_transactions(0, 3) == []
