"""Background tasks: one thread runs small tasks, once or periodically.

Retention, checkpoints, flushing and expiry of producers share it. A failed task is logged and runs again at its next
time; a slow task delays the others, so a long one uses a separate thread.
"""

import heapq
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from odradek.base.clock import SYSTEM_CLOCK, Clock
from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread

log = get_logger(__name__)


@dataclass(order=True, slots=True)
class _Task:
    due_ms: int
    number: int  # equal times run in the order in which they were asked for
    name: str = field(compare=False)
    action: Callable[[], object] = field(compare=False)
    period_ms: int | None = field(compare=False)


class Scheduler:
    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._numbers = itertools.count()
        self._tasks: list[_Task] = []
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = SupervisedThread(target=self._run, name="scheduler")

    def start(self) -> None:
        self._thread.start()

    def once(self, name: str, action: Callable[[], object], *, delay_ms: int = 0) -> None:
        """Run the task once after the delay. A task that is not due when the scheduler stops never runs."""
        self._add(name, action, delay_ms, None)

    def every(self, name: str, period_ms: int, action: Callable[[], object], *, delay_ms: int | None = None) -> None:
        self._add(name, action, period_ms if delay_ms is None else delay_ms, period_ms)

    def stop(self) -> None:
        """Let the running task end and start no other."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join()

    def _add(self, name: str, action: Callable[[], object], delay_ms: int, period_ms: int | None) -> None:
        with self._changed:
            due_ms = self._clock.monotonic_ms() + delay_ms
            heapq.heappush(self._tasks, _Task(due_ms, next(self._numbers), name, action, period_ms))
            self._changed.notify()

    def _next_due(self) -> _Task | None:
        with self._changed:
            while not self._stopping:
                wait_ms = self._tasks[0].due_ms - self._clock.monotonic_ms() if self._tasks else None
                if wait_ms is not None and wait_ms <= 0:
                    return heapq.heappop(self._tasks)
                self._changed.wait(None if wait_ms is None else wait_ms / 1000)
            return None

    def _run(self) -> None:
        while (task := self._next_due()) is not None:
            try:
                task.action()
            except Exception:
                log.exception("background task failed", task=task.name)
            if task.period_ms is not None:
                self._add(task.name, task.action, task.period_ms, task.period_ms)
