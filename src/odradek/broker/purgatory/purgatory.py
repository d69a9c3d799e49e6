"""Delayed operations: each waits for an event on one of its keys, or for its timeout, and completes exactly once.

A thread that changes something that operations wait for calls `check_and_complete(key)`. Several threads may try to
complete an operation at the same time; `force_complete` succeeds for one of them. No lock is held during that, so an
operation may take its own locks and may use the purgatory.
"""

import itertools
import threading
from abc import abstractmethod
from collections.abc import Hashable, Iterable
from typing import Any, Generic, TypeVar

from odradek.base.logs import get_logger
from odradek.broker.purgatory.reaper import ExpirationReaper, Timer

log = get_logger(__name__)

K = TypeVar("K", bound=Hashable)


class DelayedOperation(Timer):
    """An operation that completes as soon as possible, at the latest after `delay_ms`."""

    __slots__ = ("_claim", "_home", "_keys")

    def __init__(self, delay_ms: int) -> None:
        super().__init__(delay_ms)
        self._claim = threading.Lock()  # taken once, by the thread that completes it, and never given back
        self._home: Purgatory[Any] | None = None
        self._keys: tuple[Hashable, ...] = ()

    @abstractmethod
    def try_complete(self) -> bool:
        """Return `self.force_complete()` if the operation can be completed, otherwise False.

        Several threads may call it at once, and one event may cause several calls.
        """

    def try_complete_for(self, key: Hashable) -> bool:
        """Try to complete the operation after a change of this key."""
        return self.try_complete()

    @abstractmethod
    def on_complete(self) -> None:
        """Perform the operation. Runs exactly once, on the thread that completed it."""

    def on_expiration(self) -> None:
        """Runs after `on_complete`, if the timeout completed the operation."""

    @property
    def completed(self) -> bool:
        return self._claim.locked()

    def force_complete(self) -> bool:
        """Complete the operation now, unless it is complete. True for exactly one caller."""
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


class Purgatory(Generic[K]):
    def __init__(self, name: str, reaper: ExpirationReaper) -> None:
        self.name = name
        self._reaper = reaper
        self._lock = threading.Lock()
        self._watched: dict[Hashable, dict[DelayedOperation, None]] = {}
        self.waiting = 0
        """Number of operations that wait; an operation counts before it is asked for the last time."""
        self.last_event = 0
        """Number of the last event; each number is stored once, whatever threads have events at the same time."""
        self._event_numbers = itertools.count(1)

    def __len__(self) -> int:
        """Number of operations that wait."""
        return self.waiting

    @property
    def watched_keys(self) -> int:
        return len(self._watched)

    def try_complete_else_watch(self, operation: DelayedOperation, keys: Iterable[K]) -> bool:
        """Complete the operation, or let it wait for its keys and its time. Return whether it is complete."""
        return operation.try_complete() or self.watch(operation, keys)

    def watch(self, operation: DelayedOperation, keys: Iterable[K], since: int | None = None) -> bool:
        """Let an operation wait that could not be completed a moment ago. Answers whether it is complete.

        It is asked again after it is watched: an event between the first question and the watching is not missed.
        `since` is `last_event` from before the first question: if there was none since, it isn't asked.
        """
        self._watch(operation, tuple(dict.fromkeys(keys)))
        is_complete = since != self.last_event and operation.try_complete()
        if not is_complete and not self._reaper.add(operation):
            operation.expire()
        if not operation.completed:
            return False
        # It may have been completed before it was added, when there was nothing to remove.
        self.forget(operation)
        return True

    def note_event(self) -> bool:
        """Count an event, after what it changes; return whether operations may wait for it."""
        self.last_event = next(self._event_numbers)
        return self.waiting > 0

    def check_and_complete(self, key: K) -> int:
        """Try to complete the operations that wait for this key, after it has changed; returns how many completed."""
        self.last_event = next(self._event_numbers)
        if key not in self._watched:
            return 0
        with self._lock:
            waiting = list(self._watched.get(key, ()))
        count = 0
        for operation in waiting:
            try:
                count += operation.try_complete_for(key)
            except Exception:
                log.exception("delayed operation failed", purgatory=self.name, operation=repr(operation))
        return count

    def forget(self, operation: DelayedOperation) -> None:
        """Stop watching a completed operation; called by the operation itself."""
        with self._lock:
            if operation._home is self:
                operation._home = None
                self.waiting -= 1
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
            self.waiting += 1
            for key in keys:
                self._watched.setdefault(key, {})[operation] = None
