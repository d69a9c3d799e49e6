"""Expiration thread of a broker: runs all due operations."""

import threading
from abc import ABC, abstractmethod

from odradek.base.clock import SYSTEM_CLOCK, Clock
from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread
from odradek.broker.purgatory.core.timing_wheel import TimerEntry, TimingWheel

log = get_logger(__name__)


class Timer(TimerEntry, ABC):
    """A task that expires `delay_ms` after it was added."""

    __slots__ = ("delay_ms",)

    def __init__(self, delay_ms: int) -> None:
        super().__init__(0)
        self.delay_ms = delay_ms

    @abstractmethod
    def expire(self) -> None: ...


class ExpirationReaper:
    """Timers of all purgatories of a broker, and the one thread that expires them.

    The thread sleeps until the next timer is due and is woken only for an earlier one: idle, it costs nothing. A timer
    that is cancelled doesn't wake it; it finds out when it would have been due. Where time is not real (tests, the
    simulator) the thread isn't started, and `expire_due` is called instead.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._earlier = threading.Condition(self._lock)
        self._wheel = TimingWheel(clock.monotonic_ms())
        self._sleeps_until_ms: int | None = None
        self._stopped = False
        self._thread = SupervisedThread(target=self._run, name="expiration-reaper")

    def __len__(self) -> int:
        return len(self._wheel)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop expiring. Waiting timers stay."""
        with self._lock:
            self._stopped = True
            self._earlier.notify()
        if self._thread.ident is not None:
            self._thread.join()

    def add(self, timer: Timer) -> bool:
        """Add a timer. False: its time is up already."""
        now_ms = self._clock.monotonic_ms()
        deadline_ms = timer.deadline_ms = now_ms + timer.delay_ms
        with self._lock:
            if not self._wheel:
                self._wheel.advance_clock(now_ms)  # the clock of the wheel may be far behind
            if timer.delay_ms <= 0 or not self._wheel.add(timer):
                return False
            if self._sleeps_until_ms is None or deadline_ms < self._sleeps_until_ms:
                self._sleeps_until_ms = deadline_ms
                self._earlier.notify()
            return True

    def cancel(self, timer: Timer) -> None:
        with self._lock:
            self._wheel.remove(timer)

    def expire_due(self) -> int:
        """Expire all due timers; return how many there were."""
        with self._lock:
            due = self._wheel.advance_clock(self._clock.monotonic_ms())
        for timer in due:
            assert isinstance(timer, Timer)
            try:
                timer.expire()
            except Exception:
                log.exception("expiration of a delayed operation failed", timer=repr(timer))
        return len(due)

    def _run(self) -> None:
        while self._sleep_until_due():
            self.expire_due()

    def _sleep_until_due(self) -> bool:
        """Sleep until the next timer is due. False: the reaper was stopped."""
        with self._lock:
            while not self._stopped:
                due_ms = self._sleeps_until_ms = self._wheel.next_due_ms()
                wait_ms = None if due_ms is None else due_ms - self._clock.monotonic_ms()
                if wait_ms is not None and wait_ms <= 0:
                    return True
                self._earlier.wait(None if wait_ms is None else wait_ms / 1000)
            return False
