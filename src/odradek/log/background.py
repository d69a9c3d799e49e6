"""Work that the log wants done off the append path: fsync of a finished segment, removal of deleted files.

`BackgroundTasks` is the broker's: one thread, tasks in order of their time. `IMMEDIATE` does a task where it is
asked for, delays included; it serves tools and tests.
"""

import heapq
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Protocol, TypeAlias

from odradek.base.logs import get_logger

Task: TypeAlias = Callable[[], None]

log = get_logger(__name__)


class Background(Protocol):
    def run(self, task: Task, delay_ms: int = 0) -> None:
        """Does the task after the delay, on some thread. A task's error is logged and forgotten."""


class Immediate:
    def run(self, task: Task, delay_ms: int = 0) -> None:
        task()


IMMEDIATE = Immediate()


class BackgroundTasks:
    def __init__(self, name: str = "log-background") -> None:
        self._wake = threading.Condition()
        self._queue: list[tuple[float, int, Task]] = []
        self._order = count()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def run(self, task: Task, delay_ms: int = 0) -> None:
        with self._wake:
            heapq.heappush(self._queue, (time.monotonic() + delay_ms / 1000, next(self._order), task))
            self._wake.notify()

    def close(self) -> None:
        """Does what is due, drops what is not (deleted files that are left go at the next start)."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        self._thread.join()

    def _work(self) -> None:
        while (task := self._next()) is not None:
            try:
                task()
            except Exception:
                log.exception("background task failed")

    def _next(self) -> Task | None:
        with self._wake:
            while True:
                wait_s = self._queue[0][0] - time.monotonic() if self._queue else None
                if wait_s is not None and wait_s <= 0:
                    return heapq.heappop(self._queue)[2]
                if self._closed:
                    return None
                self._wake.wait(wait_s)
