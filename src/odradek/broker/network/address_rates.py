"""Limits of new connections per second from one address, where they are set. Used under its owner's lock."""

from odradek.broker.quotas.core.address_limits import AddressLimits
from odradek.broker.quotas.core.sampled_rate import SampledRate

ADDRESSES_MAX = 10_000
"""Beyond so many, those that nobody came from lately are forgotten, and then the oldest."""


class AddressRates:
    def __init__(self, limits: AddressLimits, window_ms: int, windows: int) -> None:
        self._limits = limits
        self._window_ms = window_ms
        self._windows = windows
        self._rates: dict[str, SampledRate] = {}

    def come(self, address: str, now_ms: int) -> int:
        """One more from there: 0 if it may, else for how long none may. Who is turned away doesn't count."""
        limit = self._limits.of(address)
        if limit is None:
            return 0
        rate = self._rates.get(address) or self._begin(address, now_ms)
        rate.record(1, now_ms)
        wait_ms = rate.wait_ms(limit, now_ms)
        if wait_ms:
            rate.record(-1, now_ms)
        return wait_ms

    def _begin(self, address: str, now_ms: int) -> SampledRate:
        if len(self._rates) >= ADDRESSES_MAX:
            self._rates = {known: rate for known, rate in self._rates.items() if not rate.is_idle(now_ms)}
        while len(self._rates) >= ADDRESSES_MAX:
            del self._rates[next(iter(self._rates))]
        self._rates[address] = rate = SampledRate(self._window_ms, self._windows)
        return rate
