"""Rate over the last windows of time. Pure: the caller brings the time.

With `windows` of `window_ms` each, the rate is what was recorded divided by the time since the oldest sample, which
counts as no less than `windows_min`. For clients these are all windows but one, as in Kafka's `Rate`: a new client may
use at once what it could have used in that time. For replication it is one, as in Kafka's `SimpleRate`.
The wait is Kafka's: (rate - limit) / limit of that time. Once the oldest sample is as old as all windows but one, the
rate is down to the limit after it, if nothing more comes; before, a client that goes on has to wait again.
"""

from collections import deque


class SampledRate:
    __slots__ = ("_at_least_ms", "_remembered_ms", "_samples", "_window_ms", "total")

    def __init__(self, window_ms: int, windows: int, windows_min: int | None = None) -> None:
        self._window_ms = window_ms
        self._remembered_ms = window_ms * windows
        self._at_least_ms = window_ms * (max(1, windows - 1) if windows_min is None else windows_min)
        self._samples: deque[list[float]] = deque()  # [start, last recorded, sum]
        self.total = 0.0

    def record(self, value: float, now_ms: int) -> None:
        samples = self._samples
        if not samples or now_ms - samples[-1][0] >= self._window_ms:
            self._forget(now_ms)
            samples.append([now_ms, now_ms, 0.0])
        sample = samples[-1]
        sample[1] = now_ms
        sample[2] += value
        self.total += value

    def per_second(self, now_ms: int) -> float:
        self._forget(now_ms)
        return self.total * 1000 / self._span_ms(now_ms)

    def wait_ms(self, limit: float, now_ms: int) -> int:
        """Return the wait: 0 while the rate is within the limit per second; with a limit of 0, until all samples are
        gone."""
        rate = self.per_second(now_ms)
        if rate <= limit:
            return 0
        if limit <= 0:
            return self._remembered_ms
        return round((rate - limit) / limit * self._span_ms(now_ms))

    def is_idle(self, now_ms: int) -> bool:
        self._forget(now_ms)
        return not self._samples

    def _forget(self, now_ms: int) -> None:
        samples = self._samples
        while samples and now_ms - samples[0][1] >= self._remembered_ms:
            self.total -= samples.popleft()[2]
        if not samples:
            self.total = 0.0  # sums of fractions don't come out even

    def _span_ms(self, now_ms: int) -> float:
        return max(now_ms - self._samples[0][0] if self._samples else 0, self._at_least_ms)
