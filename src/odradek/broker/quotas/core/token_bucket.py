"""Token bucket: it fills at a rate and holds the tokens of a number of seconds. Pure.

A request is admitted while any tokens are left, and may overdraw the bucket; then all wait until it is above zero.
So something larger than the bucket is possible, and paid for afterwards.
"""


class TokenBucket:
    __slots__ = ("_filled_ms", "_holds_s", "_tokens", "rate")

    def __init__(self, rate: float, holds_s: float, now_ms: int) -> None:
        self.rate = rate
        self._holds_s = holds_s
        self._tokens = rate * holds_s
        self._filled_ms = now_ms

    def wait_ms(self, now_ms: int) -> int:
        """Time until the bucket is no longer below zero."""
        self._fill(now_ms)
        if self._tokens >= 0:
            return 0
        return round(-self._tokens / self.rate * 1000) if self.rate > 0 else round(self._holds_s * 1000)

    def take(self, count: float, now_ms: int) -> None:
        self._fill(now_ms)
        self._tokens -= count

    def try_take(self, count: float, now_ms: int) -> bool:
        """Take the tokens if there are so many; return whether they were taken."""
        if self.tokens(now_ms) < count:
            return False
        self._tokens -= count
        return True

    def tokens(self, now_ms: int) -> float:
        self._fill(now_ms)
        return self._tokens

    def is_idle(self, now_ms: int) -> bool:
        return self.tokens(now_ms) >= self.rate * self._holds_s - 1e-6  # fractions don't come out even

    def _fill(self, now_ms: int) -> None:
        gained = max(0, now_ms - self._filled_ms) / 1000 * self.rate  # a wall clock may be set back
        self._tokens = min(self._tokens + gained, self.rate * self._holds_s)
        self._filled_ms = now_ms
