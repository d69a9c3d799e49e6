"""Keeps several threads together below so many bytes a second, looking every 300 ms as Kafka does."""

import threading
from collections.abc import Callable

from odradek.base.clock import Clock

_LOOK_EVERY_MS = 300


class IoThrottle:
    def __init__(self, bytes_per_second: float, clock: Clock, wait: Callable[[float], object]) -> None:
        """`wait` takes seconds, and may return early when the cleaner stops."""
        self._bytes_per_ms = bytes_per_second / 1000
        self._clock = clock
        self._wait = wait
        self._lock = threading.Lock()
        self._since_ms = clock.monotonic_ms()
        self._bytes = 0

    def used(self, size: int) -> None:
        """So many bytes were read or written. Waits when that was too fast; the other threads wait with this one."""
        with self._lock:
            self._bytes += size
            elapsed_ms = self._clock.monotonic_ms() - self._since_ms
            if elapsed_ms <= _LOOK_EVERY_MS:
                return
            too_early_ms = self._bytes / self._bytes_per_ms - elapsed_ms
            if too_early_ms > 0:
                self._wait(too_early_ms / 1000)
            self._since_ms = self._clock.monotonic_ms()
            self._bytes = 0
