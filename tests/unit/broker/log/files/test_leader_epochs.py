"""The history of leaders: what an epoch's end is, how truncation cuts it, and its checkpoint file."""

from pathlib import Path

import pytest

from odradek.broker.log.files.checkpoint import read_offsets, write_offsets
from odradek.broker.log.files.leader_epochs import LeaderEpochCache
from odradek.model.topology import TopicPartition


def cache(tmp_path: Path, *entries: tuple[int, int]) -> LeaderEpochCache:
    epochs = LeaderEpochCache(tmp_path / "leader-epoch-checkpoint")
    for epoch, start in entries:
        epochs.assign(epoch, start)
    return epochs


def test_the_file_is_kafkas_and_is_read_again(tmp_path: Path) -> None:
    epochs = cache(tmp_path, (0, 0), (2, 15), (5, 40))
    epochs.save()
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n3\n0 0\n2 15\n5 40\n"
    assert LeaderEpochCache(tmp_path / "leader-epoch-checkpoint").entries == epochs.entries
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(-1, (-1, -1)), (0, (0, 15)), (1, (0, 15)), (2, (2, 40)), (4, (2, 40)), (5, (5, 100)), (6, (-1, -1))],
)
def test_end_offsets(tmp_path: Path, epoch: int, expected: tuple[int, int]) -> None:
    assert cache(tmp_path, (0, 0), (2, 15), (5, 40)).end_offset_for(epoch, log_end_offset=100) == expected


def test_an_epoch_before_the_first_known_ends_where_that_begins(tmp_path: Path) -> None:
    assert cache(tmp_path, (3, 20), (4, 30)).end_offset_for(1, 100) == (1, 20)
    assert LeaderEpochCache(tmp_path / "none").end_offset_for(0, 100) == (-1, -1)


def test_what_contradicts_a_new_epoch_gives_way(tmp_path: Path) -> None:
    epochs = cache(tmp_path, (0, 0), (2, 15), (5, 40))
    epochs.assign(5, 50)
    assert epochs.entries[-1] == (5, 40), "an epoch keeps its first offset"
    epochs.assign(6, 15)
    assert epochs.entries == ((0, 0), (6, 15))


def test_truncation_from_both_ends(tmp_path: Path) -> None:
    epochs = cache(tmp_path, (0, 0), (2, 15), (5, 40))
    epochs.truncate_from_end(40)
    assert (epochs.entries, epochs.latest_epoch) == (((0, 0), (2, 15)), 2)
    epochs.truncate_from_start(7)
    assert epochs.entries == ((0, 7), (2, 15))
    epochs.truncate_from_start(20)
    assert epochs.entries == ((2, 20),)
    assert [epochs.epoch_for_offset(offset) for offset in (19, 20, 99)] == [-1, 2, 2]


@pytest.mark.parametrize("content", ["", "0", "0\n2\n1 1\n", "9\n0\n", "0\nx\n", "0\n1\none two\n", "\x00" * 40])
def test_a_file_that_makes_no_sense_reads_as_empty(tmp_path: Path, content: str) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_text(content)
    assert LeaderEpochCache(tmp_path / "leader-epoch-checkpoint").entries == ()
    assert read_offsets(tmp_path / "leader-epoch-checkpoint") == {}


def test_offset_checkpoints(tmp_path: Path) -> None:
    offsets = {TopicPartition("orders", 0): 12, TopicPartition("a.b_c-d", 11): 2**40}
    write_offsets(tmp_path / "recovery-point-offset-checkpoint", offsets)
    text = (tmp_path / "recovery-point-offset-checkpoint").read_text()
    assert text == f"0\n2\norders 0 12\na.b_c-d 11 {2**40}\n"
    assert read_offsets(tmp_path / "recovery-point-offset-checkpoint") == offsets
    assert read_offsets(tmp_path / "none") == {}
