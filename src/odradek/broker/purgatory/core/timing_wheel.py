"""A hierarchical timing wheel: adding, removing and expiring a timer cost the same however many there are.

A wheel of n buckets and tick u covers the next n·u milliseconds; later timers go to a coarser wheel above it,
whose tick is the whole of this one. When a coarse bucket comes due, its timers move down to finer buckets.

Worked example, with 3 buckets per wheel and a tick of 1 ms, at time 0:

    wheel 1, tick 1:   [0] [1] [2]             due at 0, 1, 2
    wheel 2, tick 3:   [0–2] [3–5] [6–8]
    wheel 3, tick 9:   [0–8] [9–17] [18–26]    made when a timer needs it

A timer for 4 is beyond wheel 1 and goes to bucket [3–5]. At time 3 that bucket comes due: wheel 1 now covers 3, 4, 5,
the timer moves to its bucket [4], and is exactly on time at 4. A timer for 4 that is added at time 3 goes there
directly.

Buckets that hold something are in a heap by their time, so that empty ticks are never visited. The wheel is pure: it
knows no clock and no lock.
"""

from heapq import heappop, heappush

_BUCKETS_PER_WHEEL = 20
_NOT_QUEUED = -1


class TimerEntry:
    """A task that is due at `deadline_ms`. In at most one bucket of one wheel."""

    __slots__ = ("bucket", "deadline_ms")

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.bucket: Bucket | None = None


class Bucket:
    __slots__ = ("due_ms", "entries")

    def __init__(self) -> None:
        self.due_ms = _NOT_QUEUED
        self.entries: dict[TimerEntry, None] = {}


class _Wheel:
    __slots__ = ("buckets", "current_ms", "span_ms", "tick_ms")

    def __init__(self, tick_ms: int, now_ms: int) -> None:
        self.tick_ms = tick_ms
        self.span_ms = tick_ms * _BUCKETS_PER_WHEEL
        self.current_ms = now_ms - now_ms % tick_ms
        self.buckets = [Bucket() for _ in range(_BUCKETS_PER_WHEEL)]


class TimingWheel:
    def __init__(self, now_ms: int, tick_ms: int = 1) -> None:
        self._wheels = [_Wheel(tick_ms, now_ms)]
        self._queue: list[tuple[int, int, Bucket]] = []  # due time, a number that settles ties, bucket
        self._pushes = 0
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, entry: TimerEntry) -> bool:
        """Add a timer. False: it is due already, and was not added."""
        deadline_ms = entry.deadline_ms
        if deadline_ms < self._wheels[0].current_ms + self._wheels[0].tick_ms:
            return False
        wheel = self._wheel_for(deadline_ms)
        slot = deadline_ms // wheel.tick_ms
        bucket = wheel.buckets[slot % _BUCKETS_PER_WHEEL]
        if bucket.due_ms == _NOT_QUEUED:
            bucket.due_ms = slot * wheel.tick_ms
            self._pushes += 1
            heappush(self._queue, (bucket.due_ms, self._pushes, bucket))
        bucket.entries[entry] = None
        entry.bucket = bucket
        self._size += 1
        return True

    def remove(self, entry: TimerEntry) -> bool:
        """Remove a timer. False: it was not in the wheel."""
        if entry.bucket is None:
            return False
        del entry.bucket.entries[entry]
        entry.bucket = None
        self._size -= 1
        return True

    def advance_clock(self, now_ms: int) -> list[TimerEntry]:
        """Return the entries that are due now, earliest first."""
        expired: list[TimerEntry] = []
        queue = self._queue
        while queue and queue[0][0] <= now_ms:
            due_ms, _, bucket = heappop(queue)
            self._turn(due_ms)
            entries, bucket.entries, bucket.due_ms = bucket.entries, {}, _NOT_QUEUED
            self._size -= len(entries)
            for entry in entries:
                entry.bucket = None
                if not self.add(entry):
                    expired.append(entry)
        self._turn(now_ms)
        return expired

    def next_due_ms(self) -> int | None:
        """Return the time to advance the clock next: that of the first bucket that is not empty."""
        queue = self._queue
        while queue and not queue[0][2].entries:
            heappop(queue)[2].due_ms = _NOT_QUEUED
        return queue[0][0] if queue else None

    def _wheel_for(self, deadline_ms: int) -> _Wheel:
        for wheel in self._wheels:
            if deadline_ms < wheel.current_ms + wheel.span_ms:
                return wheel
        top = self._wheels[-1]
        self._wheels.append(_Wheel(top.span_ms, top.current_ms))
        return self._wheel_for(deadline_ms)

    def _turn(self, now_ms: int) -> None:
        for wheel in self._wheels:
            if now_ms < wheel.current_ms + wheel.tick_ms:
                return
            wheel.current_ms = now_ms - now_ms % wheel.tick_ms
