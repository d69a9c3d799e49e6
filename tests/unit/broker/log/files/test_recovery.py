"""Opening what a stop left behind: clean, torn, bit-flipped, without its side files, in the middle of a swap."""

import os
import shutil
from pathlib import Path

import pytest
from log_building import NEVER, START_MS, append, contents, open_log, values_of

from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.format.checkpoints import LEADER_EPOCH_FILE

WIDE = LogConfig(index_interval_bytes=0)
IDEMPOTENT = {"producer_id": 5, "producer_epoch": 0}


def three_batches(directory: Path) -> tuple[PartitionLog, int]:
    """A log of a, b and c-d-e, and the position of the last batch."""
    log = open_log(directory, WIDE)
    append(log, "a", base_sequence=0, **IDEMPOTENT)
    append(log, "b", base_sequence=1, **IDEMPOTENT)
    position = log.files.size_bytes
    append(log, "c", "d", "e", base_sequence=2, **IDEMPOTENT)
    log.flush()
    return log, position


def crashed_copy(source: Path, target: Path) -> Path:
    """The files as a killed process leaves them."""
    shutil.copytree(source, target)
    return target


@pytest.fixture
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that open thousands of logs and don't tell about durability."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.mark.usefixtures("quick_disk")
def test_a_tail_cut_at_any_byte_keeps_all_before_it(tmp_path: Path) -> None:
    log, last = three_batches(tmp_path / "orders-0")
    whole = log.segments[0].path.read_bytes()
    path = tmp_path / "torn" / log.segments[0].path.name
    for cut in range(len(whole)):
        path.parent.mkdir()
        path.write_bytes(whole[:cut])
        torn = open_log(path.parent, WIDE, background=NEVER)
        kept = "" if cut < last // 2 else "a" if cut < last else "ab"
        assert values_of(contents(torn)) == list(kept), f"cut at {cut}"
        assert torn.log_end_offset == len(kept)
        assert os.stat(path).st_size == torn.files.size_bytes == len(kept) * (last // 2)
        assert append(torn, "next").first_offset == len(kept)
        shutil.rmtree(path.parent)


@pytest.mark.usefixtures("quick_disk")
def test_any_flipped_bit_of_the_last_batch_costs_that_batch_only(tmp_path: Path) -> None:
    log, last = three_batches(tmp_path / "orders-0")
    whole = log.segments[0].path.read_bytes()
    path = tmp_path / "flipped" / log.segments[0].path.name
    path.parent.mkdir()
    for bit in range(last * 8, len(whole) * 8):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        opened = open_log(path.parent, WIDE, background=NEVER)
        found = values_of(contents(opened))
        # Offset and leader epoch lie outside the checksum: a flip there that still makes a possible batch is kept.
        in_header = bit // 8 - last < 8 or 12 <= bit // 8 - last < 16
        assert found == ["a", "b"] or (in_header and found == list("abcde")), f"bit {bit}"
        opened.epochs.clear()


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "flipped", "noise"])
@pytest.mark.parametrize("clean", [True, False])
def test_side_files_are_rebuilt(tmp_path: Path, damage: str, clean: bool) -> None:
    log = open_log(tmp_path / "orders-0")
    for number in range(40):
        append(log, f"value {number}", base_sequence=number, leader_epoch=number // 15, **IDEMPOTENT)
    expected, epochs = contents(log), log.epochs.entries
    log.close()
    side_files = [path for path in sorted((tmp_path / "orders-0").iterdir()) if path.suffix != ".log"]
    assert {path.suffix for path in side_files} == {".index", ".timeindex", ".snapshot", ""}
    for victim in side_files:
        directory = crashed_copy(tmp_path / "orders-0", tmp_path / "copy")
        _damage(directory / victim.name, damage)
        opened = open_log(directory, clean=clean)
        assert contents(opened) == contents(opened, max_bytes=1) == expected, victim.name
        assert opened.find_offset_by_timestamp(START_MS) == (0, START_MS)
        assert opened.producers.entries[5].last_sequence == 39
        if victim.name != LEADER_EPOCH_FILE or (not clean and damage in ("missing", "empty")):
            assert opened.epochs.entries == epochs
        append(opened, "next", base_sequence=40, leader_epoch=3, **IDEMPOTENT)
        opened.close(clean=False)
        shutil.rmtree(directory)


def _damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "cut":
        path.write_bytes(content[:-1])
    elif how == "flipped":
        path.write_bytes(bytes(byte ^ 0xFF for byte in content))
    else:
        path.write_bytes(os.urandom(4096 - 4096 % 24))


def test_a_clean_stop_needs_no_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "orders-0")
    for number in range(40):
        append(log, f"value {number}", leader_epoch=2, base_sequence=number, **IDEMPOTENT)
    expected, producers = contents(log), log.producers.entries
    log.close()

    def forbidden(*_: object) -> None:
        raise AssertionError("scanned")

    monkeypatch.setattr("odradek.broker.log.files.recovery.checked_batches", forbidden)
    monkeypatch.setattr("odradek.broker.log.files.recovery._replay", forbidden)
    opened = open_log(tmp_path / "orders-0", clean=True)
    assert contents(opened) == expected
    assert opened.recovery_point == opened.log_end_offset == 40
    assert opened.epochs.entries == ((2, 0),)
    assert opened.producers.entries[5].batches == producers[5].batches


def test_an_unused_log_is_closed_without_a_snapshot_of_its_producers(tmp_path: Path) -> None:
    """Thousands of them are closed one after another when a broker stops, and the next start would drop it."""
    open_log(tmp_path).close()
    assert not list(tmp_path.glob("*.snapshot"))
    log = open_log(tmp_path, clean=True)
    append(log, "a", producer_id=7, producer_epoch=0, base_sequence=0)
    log.close()
    assert [path.name for path in tmp_path.glob("*.snapshot")] == ["00000000000000000001.snapshot"]
    assert open_log(tmp_path, clean=True).producers.entries.keys() == {7}


def test_after_a_crash_only_segments_from_the_recovery_point_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path / "orders-0")
    for number in range(40):
        append(log, f"value {number}")
    recovery_point = log.recovery_point
    assert recovery_point == log.segments[-1].base_offset, "every roll flushes what came before"
    scanned = []
    monkeypatch.setattr(
        "odradek.broker.log.files.recovery.recover_segment",
        lambda segment, *_: scanned.append(segment.base_offset) or 0,
    )
    open_log(tmp_path / "orders-0", recovery_point=recovery_point)
    assert scanned == [recovery_point]


def test_segments_after_a_cut_one_go(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", background=NEVER)
    for number in range(40):
        append(log, f"value {number}", base_sequence=number, **IDEMPOTENT)
    victim = log.segments[1]
    content = bytearray(victim.path.read_bytes())
    content[-1] ^= 1
    victim.path.write_bytes(content)
    opened = open_log(tmp_path / "orders-0")
    assert opened.log_end_offset == log.segments[2].base_offset - 1
    assert values_of(contents(opened)) == [f"value {number}" for number in range(opened.log_end_offset)]
    assert len(opened.segments) == 2
    assert opened.producers.entries[5].last_sequence == opened.log_end_offset - 1
    assert sorted(path.stem for path in (tmp_path / "orders-0").glob("*.index")) == [
        f"{segment.base_offset:020d}" for segment in opened.segments
    ]


def test_producers_are_known_after_a_crash(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    for number in range(40):
        append(log, f"value {number}", base_sequence=number, **IDEMPOTENT)
    opened = open_log(tmp_path / "orders-0", recovery_point=log.recovery_point)
    assert append(opened, "value 39", base_sequence=39, **IDEMPOTENT).is_duplicate
    assert append(opened, "value 40", base_sequence=40, **IDEMPOTENT).first_offset == 40


def test_epochs_are_found_again_in_the_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    for number in range(10):
        append(log, f"value {number}", leader_epoch=number // 4)
    assert not (tmp_path / "orders-0" / LEADER_EPOCH_FILE).exists()
    assert open_log(tmp_path / "orders-0").epochs.entries == ((0, 0), (1, 4), (2, 8))


def test_epochs_are_on_disk_before_the_recovery_point_passes_them(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    for number in range(8):
        append(log, f"value {number}", leader_epoch=number // 4)
    log.flush()
    append(log, "value 8", leader_epoch=2)
    opened = open_log(tmp_path / "orders-0", recovery_point=log.recovery_point)
    assert opened.epochs.entries == ((0, 0), (1, 4), (2, 8))


@pytest.mark.parametrize("is_saved", [False, True])
@pytest.mark.parametrize("further", [0, 1, 12])
@pytest.mark.parametrize("cut", [5, 8, 10])
def test_epochs_that_were_cut_off_are_gone_after_a_crash(
    tmp_path: Path, cut: int, further: int, is_saved: bool
) -> None:
    """Though the file still says them: an election cuts thousands of logs, and waits for none of their disks."""
    log = open_log(tmp_path / "orders-0")
    for number in range(10):
        append(log, f"value {number}", leader_epoch=number // 4)
    log.begin_epoch(3)  # it led, and wrote nothing
    log.flush()
    log.epochs.save()
    log.truncate_to(cut)
    for number in range(further):
        append(log, f"other {number}", leader_epoch=5)
    if is_saved:
        log.flush()
    expected = log.epochs.entries
    assert expected[-1] == ((5, cut) if further else (cut // 5, 4 * (cut // 5)))
    opened = open_log(tmp_path / "orders-0", recovery_point=log.recovery_point)
    assert opened.epochs.entries == expected
    assert contents(opened) == contents(log)


@pytest.mark.parametrize("further", [1, 4, 12])
@pytest.mark.parametrize("later_epoch", [None, 5])
@pytest.mark.parametrize(("cut", "older_epoch"), [(5, 1), (5, 2), (8, 1)])
def test_epochs_that_were_cut_off_are_gone_though_what_was_copied_instead_is_older(
    tmp_path: Path, cut: int, older_epoch: int, later_epoch: int | None, further: int
) -> None:
    """A leader that got its role back has more batches of its former epoch. Else this replica would tell another one
    that its batches of the epochs that were cut off are right."""
    log = open_log(tmp_path / "orders-0")
    for number in range(10):
        append(log, f"value {number}", leader_epoch=number // 4)
    log.begin_epoch(3)
    log.flush()
    log.epochs.save()
    log.truncate_to(cut)
    for number in range(further):
        append(log, f"other {number}", leader_epoch=older_epoch)
    if later_epoch is not None:
        append(log, "last", leader_epoch=later_epoch)
    opened = open_log(tmp_path / "orders-0", recovery_point=log.recovery_point)
    assert opened.epochs.entries == log.epochs.entries
    assert contents(opened) == contents(log)


def test_a_truncation_does_not_wait_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "orders-0")
    for number in range(3):
        append(log, f"value {number}", base_sequence=number, **IDEMPOTENT)
    log.begin_epoch(3)
    log.flush()

    def slow(_: int) -> None:
        raise AssertionError

    monkeypatch.setattr(os, "fsync", slow)
    log.truncate_to(3)
    log.truncate_to(1)
    assert log.epochs.entries == ((0, 0),)
    assert log.producers.entries[5].last_sequence == 0


def test_a_log_that_ends_before_its_start_starts_over(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, "a")
    opened = open_log(tmp_path / "orders-0", log_start_offset=50)
    assert (opened.log_start_offset, opened.log_end_offset, contents(opened)) == (50, 50, [])


def test_the_start_offset_is_kept(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    for number in range(10):
        append(log, f"value {number}")
    opened = open_log(tmp_path / "orders-0", log_start_offset=4)
    assert contents(opened)[0] == (4, "value 4")


def test_leftovers_of_deletion_and_compaction(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    for number in range(40):
        append(log, f"value {number}")
    expected = contents(log)
    log.close()
    directory = tmp_path / "orders-0"
    first, second = log.segments[0], log.segments[1]
    # A finished compaction of the first two segments, not yet in place: the first keeps its records.
    merged = first.path.read_bytes() + second.path.read_bytes()
    (directory / f"{first.path.name}.swap").write_bytes(merged)
    (directory / f"{second.base_offset:020d}.log.deleted").write_bytes(b"old")
    (directory / f"{999:020d}.log.cleaned").write_bytes(b"half")
    (directory / f"{999:020d}.index").write_bytes(b"")
    opened = open_log(directory)
    assert contents(opened) == expected
    assert len(opened.segments) == len(log.segments) - 1
    assert not [path for path in directory.iterdir() if path.suffix in (".swap", ".deleted", ".cleaned")]
    assert not (directory / f"{999:020d}.index").exists()


def test_a_swap_of_an_unfinished_set_is_dropped(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, "a")
    log.close()
    directory = tmp_path / "orders-0"
    (directory / f"{0:020d}.log.swap").write_bytes(b"")
    (directory / f"{0:020d}.log.cleaned").write_bytes(b"")
    assert contents(open_log(directory)) == [(0, "a")]


def test_an_index_of_zeros_is_not_believed(tmp_path: Path) -> None:
    """Kafka's preallocated indexes have a tail of zeros after a crash."""
    log = open_log(tmp_path / "orders-0", LogConfig(index_interval_bytes=0))
    for number in range(20):
        append(log, f"value {number}", timestamp=START_MS + number)
    log.close()
    for path in (log.segments[0].index.path, log.segments[0].time_index.path):
        with open(path, "ab") as file:
            file.write(bytes(240))
    opened = open_log(tmp_path / "orders-0", clean=True)
    assert contents(opened, max_bytes=1)[-1] == (19, "value 19")
    assert opened.find_offset_by_timestamp(START_MS + 7) == (7, START_MS + 7)


@pytest.mark.parametrize("damage", ["magic", "length", "cut"])
@pytest.mark.parametrize("victim", [0, -1])
def test_a_broken_first_batch_of_a_trusted_segment_stops_no_start(tmp_path: Path, victim: int, damage: str) -> None:
    """Bits rot, also in segments that a clean stop has vouched for. Who reads the batch is told, nobody else."""
    log = open_log(tmp_path / "orders-0")
    for number in range(40):
        append(log, f"value {number}", base_sequence=number, **IDEMPOTENT)
    log.close()
    broken = log.segments[victim]
    content = bytearray(broken.path.read_bytes())
    if damage == "magic":
        content[16] = 9
    elif damage == "length":
        content[8:12] = b"\xff\xff\xff\xff"
    else:
        del content[10:]
    broken.path.write_bytes(content)
    for snapshot in (tmp_path / "orders-0").glob("*.snapshot"):
        snapshot.unlink()
    opened = open_log(tmp_path / "orders-0", clean=True)
    end = opened.log_end_offset
    assert end == (broken.base_offset if (victim, damage) == (-1, "cut") else 40)
    assert append(opened, "next", base_sequence=end, **IDEMPOTENT).first_offset == end
    healthy = opened.segments[1]
    found = opened.read(healthy.base_offset, 1 << 20, upper_bound=healthy.end_offset).records.read()
    assert found[:8] == healthy.base_offset.to_bytes(8, "big")


def test_a_segment_without_timestamps_does_not_roll_because_of_a_restart(tmp_path: Path) -> None:
    """Its age is counted from when it was opened: nothing else is known."""
    config = LogConfig(segment_ms=1000)
    log = open_log(tmp_path / "orders-0", config)
    append(log, "a", timestamp=-1)
    log.close()
    opened = open_log(tmp_path / "orders-0", config, clean=True)
    append(opened, "b", timestamp=-1)
    assert [segment.base_offset for segment in opened.segments] == [0]
