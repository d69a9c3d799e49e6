"""Operations that wait: for an event that concerns one of their keys, or for their time to be up; completed once.

Whoever changes something that others may wait for calls `check_and_complete(key)`. Operations may be asked and
completed by several threads at the same time; `force_complete` decides who it was. No lock is held while an operation
is asked or completed, so it may take locks of its own and may come back to the purgatory.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from typing import Any, Generic, TypeVar

from odradek.base.clock import SYSTEM_CLOCK, Clock
from odradek.base.logs import get_logger
from odradek.purgatory.timing_wheel import TimerEntry, TimingWheel

log = get_logger(__name__)

K = TypeVar("K", bound=Hashable)


class DelayedOperation(TimerEntry, ABC):
    """Something to be done as soon as it can be, and at the latest when `delay_ms` are over."""

    __slots__ = ("_claim", "_home", "_keys", "delay_ms")

    def __init__(self, delay_ms: int) -> None:
        super().__init__(0)
        self.delay_ms = delay_ms
        self._claim = threading.Lock()  # taken once, by whoever completes it, and never given back
        self._home: Purgatory[Any] | None = None
        self._keys: tuple[Hashable, ...] = ()

    @abstractmethod
    def try_complete(self) -> bool:
        """Look whether it can be done, and if so answer `self.force_complete()`.

        Several threads may be here at once, and an event may be asked about more than once.
        """

    @abstractmethod
    def on_complete(self) -> None:
        """What is to be done. Runs exactly once, on the thread that completed it."""

    def on_expiration(self) -> None:
        """Runs after `on_complete`, if it was the time that completed it."""

    @property
    def completed(self) -> bool:
        return self._claim.locked()

    def force_complete(self) -> bool:
        """Complete it now, unless it is. True for exactly one caller."""
        if not self._claim.acquire(blocking=False):
            return False
        home = self._home
        if home is not None:
            home.forget(self)
        self.on_complete()
        return True

    def expire(self) -> None:
        if self.force_complete():
            self.on_expiration()


class ExpirationReaper:
    """The timers of all purgatories of a broker, and the one thread that runs what is due.

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
        self._thread = threading.Thread(target=self._run, name="expiration-reaper", daemon=True)

    def __len__(self) -> int:
        return len(self._wheel)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Nothing expires any more. What waits, waits on."""
        with self._lock:
            self._stopped = True
            self._earlier.notify()
        if self._thread.ident is not None:
            self._thread.join()

    def add(self, operation: DelayedOperation) -> bool:
        """False: its time is up already."""
        now_ms = self._clock.monotonic_ms()
        deadline_ms = operation.deadline_ms = now_ms + operation.delay_ms
        with self._lock:
            if not self._wheel:
                self._wheel.advance_clock(now_ms)  # it may have stood still for long
            if operation.delay_ms <= 0 or not self._wheel.add(operation):
                return False
            if self._sleeps_until_ms is None or deadline_ms < self._sleeps_until_ms:
                self._sleeps_until_ms = deadline_ms
                self._earlier.notify()
            return True

    def cancel(self, operation: DelayedOperation) -> None:
        with self._lock:
            self._wheel.remove(operation)

    def expire_due(self) -> int:
        """Expire what is due by now; how many that were."""
        with self._lock:
            due = self._wheel.advance_clock(self._clock.monotonic_ms())
        for operation in due:
            assert isinstance(operation, DelayedOperation)
            try:
                operation.expire()
            except Exception:
                log.exception("an operation failed when its time was up", operation=repr(operation))
        return len(due)

    def _run(self) -> None:
        while self._sleep_until_due():
            self.expire_due()

    def _sleep_until_due(self) -> bool:
        """False: it has been stopped."""
        with self._lock:
            while not self._stopped:
                due_ms = self._sleeps_until_ms = self._wheel.next_due_ms()
                wait_ms = None if due_ms is None else due_ms - self._clock.monotonic_ms()
                if wait_ms is not None and wait_ms <= 0:
                    return True
                self._earlier.wait(None if wait_ms is None else wait_ms / 1000)
            return False


class Purgatory(Generic[K]):
    def __init__(self, name: str, reaper: ExpirationReaper) -> None:
        self.name = name
        self._reaper = reaper
        self._lock = threading.Lock()
        self._watched: dict[Hashable, dict[DelayedOperation, None]] = {}
        self._waiting = 0

    def __len__(self) -> int:
        """How many operations wait."""
        return self._waiting

    @property
    def watched_keys(self) -> int:
        return len(self._watched)

    def try_complete_else_watch(self, operation: DelayedOperation, keys: Iterable[K]) -> bool:
        """Complete the operation, or let it wait for its keys and its time. Answers whether it is complete.

        It is asked again after it is watched: an event between the first question and the watching is not missed.
        """
        if operation.try_complete():
            return True
        self._watch(operation, tuple(dict.fromkeys(keys)))
        if not operation.try_complete() and not self._reaper.add(operation):
            operation.expire()
        if not operation.completed:
            return False
        # Whoever completed it may have done so before it was added, and found nothing to remove.
        self.forget(operation)
        return True

    def check_and_complete(self, key: K) -> int:
        """Ask all who wait for this key; how many could be completed."""
        if key not in self._watched:
            return 0
        with self._lock:
            waiting = list(self._watched.get(key, ()))
        count = 0
        for operation in waiting:
            try:
                count += operation.try_complete()
            except Exception:
                log.exception("a waiting operation failed", purgatory=self.name, operation=repr(operation))
        return count

    def forget(self, operation: DelayedOperation) -> None:
        """Called by the operation when it is completed: nobody has to ask it any more."""
        with self._lock:
            if operation._home is self:
                operation._home = None
                self._waiting -= 1
                for key in operation._keys:
                    watchers = self._watched[key]
                    del watchers[operation]
                    if not watchers:
                        del self._watched[key]
        self._reaper.cancel(operation)

    def _watch(self, operation: DelayedOperation, keys: tuple[K, ...]) -> None:
        with self._lock:
            operation._home = self
            operation._keys = keys
            self._waiting += 1
            for key in keys:
                watchers = self._watched.get(key)
                if watchers is None:
                    self._watched[key] = {operation: None}
                else:
                    watchers[operation] = None
