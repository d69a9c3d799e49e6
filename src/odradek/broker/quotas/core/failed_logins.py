"""Failed logins by client address: an address with too many in a second gets no further connection in that second.

Another login costs a connection, so the work that guesses of passwords can ask for is bounded. Pure: callers bring the
time. Threads may call without a lock: a lost count lets one more login through.
"""

_WINDOW_MS = 1000
_ADDRESSES_MAX = 10_000


class FailedLogins:
    __slots__ = ("_limit", "_windows")

    def __init__(self, limit_per_second: int) -> None:
        self._limit = limit_per_second
        self._windows: dict[str, tuple[int, int]] = {}
        """Begin of the current second, and failures in it."""

    def failed(self, address: str, now_ms: int) -> None:
        began_ms, count = self._windows.pop(address, (now_ms, 0))
        if now_ms - began_ms >= _WINDOW_MS:
            began_ms, count = now_ms, 0
        if len(self._windows) >= _ADDRESSES_MAX:
            self._windows.pop(next(iter(self._windows)), None)  # the one that failed longest ago
        self._windows[address] = began_ms, count + 1

    def wait_ms(self, address: str, now_ms: int) -> int:
        """Time for which no connection is taken from there; 0: none."""
        window = self._windows.get(address)
        if window is None or window[1] < self._limit:
            return 0
        return max(0, window[0] + _WINDOW_MS - now_ms)
