"""Gaps of journals, found from the entries that are there."""

from collections.abc import Iterable

import pytest

from odradek.broker.recorder.core.entry import Entry, Kind
from odradek.broker.recorder.core.gaps import GapFinder, gap_text, uncertain_at
from odradek.broker.recorder.journals import merged


def lines(broker: int, *seqs: int, epoch: int | None = None) -> list[Entry]:
    return [Entry(1_000 * seq, broker, seq, Kind.EVENT, "Event", controller_epoch=epoch) for seq in seqs]


def found(entries: Iterable[Entry]) -> list[Entry]:
    finder = GapFinder()
    for entry in entries:
        finder.note(entry)
    return finder.gaps()


def test_a_jump_of_the_numbers_is_a_gap() -> None:
    (gap,) = found([*lines(1, 3, 4), *lines(0, 1), *lines(1, 9, 10)])
    assert (gap.broker, gap.count, gap.since_ms, gap.time_ms) == (1, 4, 4_000, 9_000)
    assert gap_text(gap) == "journal of broker 1: 4 entries are missing"
    story = merged([*lines(1, 3, 4, 9, 10), gap])
    assert [entry.kind for entry in story] == [Kind.EVENT, Kind.EVENT, Kind.GAP, Kind.EVENT, Kind.EVENT]


def test_the_beginning_may_be_rotated_away() -> None:
    assert found(lines(1, 700, 701)) == []


@pytest.mark.parametrize("order", [(1, 2, 3, 4, 5), (4, 5, 1, 2, 3), (1, 2, 3, 2, 3, 4, 5), (1, 2, 4, 5, 3)])
def test_files_in_any_order_and_copies_have_no_gap(order: tuple[int, ...]) -> None:
    assert found(lines(1, *order)) == []


def test_a_broker_tells_of_its_own_gap_once() -> None:
    told = Entry(8_000, 1, 8, Kind.GAP, "NotWritten", count=5, after=2, since_ms=2_000, text="no space")
    assert found([*lines(1, 1, 2), told, *lines(1, 9)]) == []
    assert gap_text(told) == "journal of broker 1: 5 entries are missing: no space"
    dropped = Entry(9_000, 1, 9, Kind.DROPPED, "Dropped", count=1)
    assert gap_text(dropped) == "journal of broker 1: 1 entry is missing: the queue had no room"


def test_a_journal_that_moved_names_where_it_began() -> None:
    moved = Entry(7_000, 1, 6, Kind.LOG_DIR, "JournalMoved", after=4, since_ms=4_500, directory="/disk-a")
    here = [*lines(1, 5), moved, *lines(1, 7)]
    (gap,) = found(here)
    assert (gap.count, gap.since_ms, gap_text(gap)) == (
        None,
        4_500,
        "journal of broker 1: entries are missing: earlier entries are in /disk-a",
    )
    assert found([*lines(1, 1, 2, 3, 4), *here]) == []
    (hole,) = found([*lines(1, 1, 2), *here])
    assert (hole.count, hole.text) == (2, "they may be in /disk-a")


def test_a_controller_without_a_journal_is_a_gap() -> None:
    (gap,) = found([*lines(0, 1, 2, epoch=3), *lines(1, 9, epoch=5)])
    assert gap_text(gap) == "no journal of the controller of epoch 4 is given"
    assert (gap.since_ms, gap.time_ms, gap.controller_epoch) == (2_000, 9_000, 4)
    (several,) = found([*lines(0, 1, epoch=3), *lines(1, 9, epoch=900)])
    assert gap_text(several) == "no journal of the controller of epochs 4 to 899 is given"
    assert found([*lines(0, 1, epoch=3), *lines(1, 9, epoch=4)]) == []


def test_a_picture_is_uncertain_until_everything_is_read_anew() -> None:
    ruled = lines(0, 1, 2, epoch=1)
    gap = Entry(6_000, 0, 6, Kind.GAP, "NotWritten", count=3, since_ms=2_000)
    idle = Entry(6_500, 9, 6, Kind.GAP, "NotWritten", count=3, since_ms=2_000)  # of a broker that rules nothing
    later = lines(0, 7, epoch=1)
    read = Entry(8_000, 1, 1, Kind.TERM, "TookOver", controller_epoch=2)
    story = merged([*ruled, gap, idle, *later, read])
    assert uncertain_at(story, 1_500) == []
    assert uncertain_at(story, 3_000) == uncertain_at(story, 6_000) == uncertain_at(story, 7_500) == [gap]
    assert uncertain_at(story, 8_000) == uncertain_at(story, None) == []
    assert uncertain_at(story[:-1], None) == [gap]
