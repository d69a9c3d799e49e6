"""The controller's queue: first in, first out, with urgent events in front, and delayed ones at their time.

Any thread may put, only the event thread takes. It stays small without a limit: a znode that changes again before it
was processed is in it once, a broker has one request in flight, and a client waits for its answer.
"""

import heapq
import itertools
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from odradek.base.clock import Clock

T = TypeVar("T")


class EventQueue(Generic[T]):
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._items: deque[T] = deque()
        self._queued_once: set[T] = set()
        self._later: list[tuple[int, int, T]] = []
        self._numbers = itertools.count()  # equal times keep the order in which they were asked for

    def put(self, item: T) -> None:
        with self._changed:
            self._items.append(item)
            self._changed.notify()

    def put_first(self, item: T) -> None:
        with self._changed:
            self._items.appendleft(item)
            self._changed.notify()

    def put_once(self, item: T) -> None:
        """Queue the event, unless an equal one waits already."""
        with self._changed:
            if item not in self._queued_once:
                self._queued_once.add(item)
                self._items.append(item)
                self._changed.notify()

    def put_later(self, item: T, delay_ms: int) -> None:
        with self._changed:
            heapq.heappush(self._later, (self._clock.monotonic_ms() + delay_ms, next(self._numbers), item))
            self._changed.notify()

    def take(self) -> T:
        """Return the next event; waits for it."""
        with self._changed:
            while True:
                wait_ms = self._promote_due()
                if self._items:
                    item = self._items.popleft()
                    self._queued_once.discard(item)
                    return item
                self._changed.wait(None if wait_ms is None else wait_ms / 1000)

    def drop(self, unwanted: Callable[[T], bool]) -> list[T]:
        """Remove unwanted events, delayed ones included."""
        with self._changed:
            dropped = [item for item in self._items if unwanted(item)]
            dropped += [item for _, _, item in self._later if unwanted(item)]
            self._items = deque(item for item in self._items if not unwanted(item))
            self._later = [entry for entry in self._later if not unwanted(entry[2])]
            heapq.heapify(self._later)
            self._queued_once.difference_update(dropped)
            return dropped

    def _promote_due(self) -> int | None:
        """Queue the due events; return the time until the next one."""
        while self._later:
            wait_ms = self._later[0][0] - self._clock.monotonic_ms()
            if wait_ms > 0:
                return wait_ms
            self._items.append(heapq.heappop(self._later)[2])
        return None
