"""Pace of a copy beside the writers, which wait for its end: pure arithmetic."""

from odradek.broker.replication.core.move_pace import FINISH_BYTES, HELD_ROUNDS_MAX, Manner, Pace

PIECE = 1 << 20


def lap(pace: Pace, remaining: int, written: int) -> int:
    """Copies all that remains beside writers who write so much meanwhile; what remains then."""
    copied = 0
    while copied < remaining:
        assert pace.next(remaining - copied + written) is Manner.BESIDE
        piece = min(PIECE, remaining - copied)
        pace.copied(piece)
        copied += piece
    return written


def test_a_log_that_nobody_writes_is_copied_beside_and_finished() -> None:
    pace = Pace()
    assert lap(pace, 20 * PIECE, 0) == 0
    assert pace.next(0) is Manner.FINISH


def test_slower_writers_are_never_held_back() -> None:
    pace, remaining = Pace(), 1000 * PIECE
    while remaining > FINISH_BYTES:
        remaining = lap(pace, remaining, remaining // 2)
    assert pace.next(remaining) is Manner.FINISH


def test_faster_writers_wait_for_pieces_and_in_the_end_for_all() -> None:
    pace = Pace()
    assert pace.next(10 * PIECE) is Manner.BESIDE
    pace.copied(10 * PIECE)
    manners = [pace.next(remaining) for remaining in (30 * PIECE, 29 * PIECE, 28 * PIECE)]
    assert manners == [Manner.HELD] * 3
    growing = [pace.next((28 + number) * PIECE) for number in range(HELD_ROUNDS_MAX)]
    assert growing == [Manner.HELD] * (HELD_ROUNDS_MAX - 1) + [Manner.FINISH]


def test_a_throttle_holds_no_writer_back() -> None:
    pace = Pace()
    assert pace.next(10 * PIECE) is Manner.BESIDE
    pace.copied(10 * PIECE)
    pace.start_over()
    assert pace.next(30 * PIECE) is Manner.BESIDE
