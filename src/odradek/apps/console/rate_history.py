"""Rates of topics and lags of groups over a day, a point for each minute. In memory, bounded.

Points come from the readings for pages: nothing is read when nobody looks, and a gap is drawn as a gap.
"""

import threading
from collections import deque
from collections.abc import Mapping

POINTS_MAX = 24 * 60
NAMES_MAX = 1_000
_MINUTE_MS = 60_000


class RateHistory:
    """Thread-safe. Of too many names the ones that were noted longest ago go."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._points: dict[str, deque[tuple[int, float, int]]] = {}

    def note(self, at_ms: int, values: Mapping[str, float]) -> None:
        """Add values of one moment; of those within a minute the mean is kept."""
        minute = at_ms // _MINUTE_MS
        with self._lock:
            for name, value in values.items():
                points = self._points.pop(name, None) or deque(maxlen=POINTS_MAX)
                self._points[name] = points
                if points and points[-1][0] == minute:
                    _, mean, number = points[-1]
                    points[-1] = (minute, mean + (value - mean) / (number + 1), number + 1)
                else:
                    points.append((minute, value, 1))
            while len(self._points) > NAMES_MAX:
                del self._points[next(iter(self._points))]

    def over_a_day(self, name: str, now_ms: int) -> list[tuple[int, float]]:
        """Return time and mean of each minute that was noted, oldest first."""
        first = now_ms // _MINUTE_MS - POINTS_MAX
        with self._lock:
            return [(minute * _MINUTE_MS, mean) for minute, mean, _ in self._points.get(name, ()) if minute > first]
