"""Rates of topics and lags of groups over a day, a point for each minute. In memory, bounded.

Points come from the readings for pages and from the history keeper; a minute without any is drawn as a gap.
"""

import threading
from array import array
from collections.abc import Mapping

POINTS_MAX = 24 * 60
NAMES_MAX = 1_000
_MINUTE_MS = 60_000


class _Series:
    """Minutes and their means, twelve bytes for each: a thousand names for a day are 17 MB."""

    __slots__ = ("means", "minutes", "values_of_last")

    def __init__(self) -> None:
        self.minutes = array("I")
        self.means = array("d")
        self.values_of_last = 0

    def note(self, minute: int, value: float) -> None:
        if self.minutes and self.minutes[-1] == minute:
            self.values_of_last += 1
            self.means[-1] += (value - self.means[-1]) / self.values_of_last
            return
        self.minutes.append(minute)
        self.means.append(value)
        self.values_of_last = 1
        if len(self.minutes) > POINTS_MAX:
            del self.minutes[0], self.means[0]


class RateHistory:
    """Thread-safe. If there are too many names, the oldest ones are dropped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._series: dict[str, _Series] = {}

    def note(self, at_ms: int, values: Mapping[str, float]) -> None:
        """Add values of one moment; the mean of each minute is kept."""
        minute = at_ms // _MINUTE_MS
        with self._lock:
            for name, value in values.items():
                series = self._series.pop(name, None) or _Series()
                self._series[name] = series
                series.note(minute, value)
            while len(self._series) > NAMES_MAX:
                del self._series[next(iter(self._series))]

    def over_a_day(self, name: str, now_ms: int) -> list[tuple[int, float]]:
        """Return time and mean of each minute that was noted, oldest first."""
        first = now_ms // _MINUTE_MS - POINTS_MAX
        with self._lock:
            series = self._series.get(name)
            if series is None:
                return []
            points = zip(series.minutes, series.means, strict=True)
            return [(minute * _MINUTE_MS, mean) for minute, mean in points if minute > first]

    def latest(self, name: str, number: int) -> list[float]:
        """Return the means of the last minutes that were noted, oldest first."""
        with self._lock:
            series = self._series.get(name)
            return [] if series is None else list(series.means[-number:])
