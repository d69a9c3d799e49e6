"""Failed logins by client address: an address with too many in a second gets no further connection for a while.

At first that is the rest of the second, then twice as long each time that it continues, up to ten seconds. Another
login costs a connection, so the work that guesses of passwords can ask for is bounded. After such a time each of its
connections counts as a failure until it has logged in: of a flood thousands would be taken before the first hundred of
their logins were judged. Pure: callers bring the time. Threads may call without a lock: a lost count lets one more
login through.
"""

from collections import OrderedDict
from ipaddress import IPv6Network
from typing import NamedTuple

_WINDOW_MS = 1000
_HOLD_MS_MAX = 10_000
_ADDRESSES_MAX = 10_000
_NETWORK_BITS = 64


class _Window(NamedTuple):
    began_ms: int
    failures: int
    hold_ms: int
    """Time from the begin for which no connection is taken, once there were too many; 0: there were not."""


def network_of(address: str) -> str:
    """Return what counts as one address: of version 6 the network of 64 bits, which one machine has for itself."""
    if ":" not in address:
        return address
    try:
        return str(IPv6Network((address.partition("%")[0], _NETWORK_BITS), strict=False).network_address)
    except ValueError:
        return address


class FailedLogins:
    __slots__ = ("_limit", "_windows")

    def __init__(self, limit_per_second: int) -> None:
        self._limit = limit_per_second
        self._windows: OrderedDict[str, _Window] = OrderedDict()

    def failed(self, address: str, now_ms: int) -> None:
        address = network_of(address)
        began_ms, count, hold_ms = self._windows.pop(address, _Window(now_ms, 0, 0))
        ends_ms = began_ms + max(_WINDOW_MS, hold_ms)
        if now_ms >= ends_ms:
            goes_on = count >= self._limit and now_ms - ends_ms < _HOLD_MS_MAX
            began_ms, count, hold_ms = now_ms, 0, hold_ms if goes_on else 0
        count += 1
        if count == self._limit:
            hold_ms = min(max(_WINDOW_MS, 2 * hold_ms), _HOLD_MS_MAX)
        if len(self._windows) >= _ADDRESSES_MAX:
            self._windows.popitem(last=False)  # the one that failed longest ago; one step, which no thread interrupts
        self._windows[address] = _Window(began_ms, count, hold_ms)

    def flooded(self, address: str, now_ms: int) -> None:
        """Count as many failures as an address may have."""
        for _ in range(self._limit):
            self.failed(address, now_ms)

    def connected(self, address: str, now_ms: int) -> int:
        """Ask for a connection: 0 if it is taken, else the time for which none is."""
        wait_ms = self.wait_ms(address, now_ms)
        window = self._windows.get(network_of(address))
        if not wait_ms and window is not None and window.hold_ms:
            self.failed(address, now_ms)
        return wait_ms

    def succeeded(self, address: str) -> None:
        """Undo the failure that was counted for a connection after a hold."""
        address = network_of(address)
        window = self._windows.get(address)
        if window is not None and window.hold_ms and 0 < window.failures < self._limit:
            self._windows[address] = window._replace(failures=window.failures - 1)

    def wait_ms(self, address: str, now_ms: int) -> int:
        """Time for which no connection is taken from there; 0: none."""
        window = self._windows.get(network_of(address))
        if window is None or window.failures < self._limit:
            return 0
        return max(0, window.began_ms + window.hold_ms - now_ms)
