"""Clocks: the only module through which most code reads the time.

Code that makes decisions takes a `Clock`; the broker passes `SYSTEM_CLOCK`, tests and the simulator pass their own.
"""

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall-clock milliseconds since the epoch: for timestamps that people and records see."""

    def monotonic_ms(self) -> int:
        """Milliseconds that never go back: for timeouts and intervals."""


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


SYSTEM_CLOCK = SystemClock()


class ManualClock:
    """A clock that moves only by calls."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._now_ms

    def advance(self, ms: int) -> None:
        self._now_ms += ms
