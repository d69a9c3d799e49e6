"""Pace of a copy of a log that is written all the time: beside the writers while it gains on them, then with the
writers waiting. Pure.

Copying the log takes a while, in which more is written; copying that takes less, and so on: each lap is shorter
than the one before, as long as the copy is faster than the writers. If it isn't, they are held back, a piece at a
time; and if even that doesn't help, until all is copied. So every move comes to its end.

A throttle is set by the operator: writers never wait to compensate for it.
"""

from enum import Enum

FINISH_BYTES = 256 << 10
HELD_ROUNDS_MAX = 8
_GETS_CLOSER = 0.75  # a lap that leaves more than this share of the lap before is too slow


class Manner(Enum):
    BESIDE = "the writers go on meanwhile"
    HELD = "the writers wait for this piece"
    FINISH = "the writers wait until all is copied, and the copy takes the log's place"


class Pace:
    __slots__ = ("_finish_bytes", "_held_before", "_held_rounds", "_is_holding", "_lap", "_left")

    def __init__(self, finish_bytes: int = FINISH_BYTES) -> None:
        self._finish_bytes = finish_bytes
        self.start_over()

    def start_over(self) -> None:
        """Forget the measured laps: a throttle has stopped the copy, or it was truncated."""
        self._lap: int | None = None  # what was to copy when the lap began
        self._left = 0  # of the lap
        self._is_holding = False
        self._held_before = 0
        self._held_rounds = 0

    @property
    def is_in_lap(self) -> bool:
        """The next piece can only be one beside the writers: what remains in all needn't be looked up for it."""
        return not self._is_holding and self._left > self._finish_bytes

    def next(self, remaining: int) -> Manner:
        """Return how to copy the next piece, of so many bytes that remain now."""
        if remaining <= self._finish_bytes:
            return Manner.FINISH
        if not self._is_holding:
            self._end_lap(remaining)
        elif remaining >= self._held_before:
            self._held_rounds += 1
        if not self._is_holding:
            return Manner.BESIDE
        self._held_before = remaining
        return Manner.HELD if self._held_rounds < HELD_ROUNDS_MAX else Manner.FINISH

    def copied(self, size: int) -> None:
        self._left -= size

    def _end_lap(self, remaining: int) -> None:
        if self._lap is not None and self._left > 0:
            return
        if self._lap is not None and remaining > self._lap * _GETS_CLOSER:
            self._is_holding = True
            self._held_before = remaining + 1
        self._lap = self._left = remaining
