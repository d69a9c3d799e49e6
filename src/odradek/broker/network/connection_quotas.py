"""Limits of the number of connections, and of the rate of new ones. Shared by acceptors and processors, one lock.

At `max.connections`, of the broker or of the listener, the acceptor waits with the connection in its hand until another
one ends, so the rest queue in the kernel. A client address beyond its own limit is refused at once, one that comes too
often, or whose logins fail too often, after a while. The inter-broker listener, where it is not the only one, is exempt
from the broker's `max.connections` and `max.connection.creation.rate`, and from the penalty for failed logins: the
cluster must not be locked out by its clients.
"""

import threading
from collections import Counter
from time import monotonic

from odradek.broker.network.settings import UNLIMITED, ListenerSettings, ServerSettings
from odradek.broker.quotas.core.address_limits import AddressLimits
from odradek.broker.quotas.core.sampled_rate import SampledRate

ADDRESSES_MAX = 10_000
"""Maximum number of addresses in memory: beyond it, those without recent connections are dropped, then the oldest."""


class AddressRates:
    """Limits of new connections per second from one address, where they are set. Used under its owner's lock."""

    def __init__(self, limits: AddressLimits, window_ms: int, windows: int) -> None:
        self._limits = limits
        self._window_ms = window_ms
        self._windows = windows
        self._rates: dict[str, SampledRate] = {}

    def come(self, address: str, now_ms: int) -> int:
        """Count a connection and return 0, or return the time for which none is allowed."""
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


_BURST_S = 1.0
_BROKER = ""


class TooManyConnections(Exception):
    """The client's address has as many connections as it may have."""


class ComesTooOften(Exception):
    """An address makes more connections or failed logins a second than allowed; the connection is closed after this
    time."""

    def __init__(self, host: str, wait_ms: int) -> None:
        super().__init__(f"{host} connects too often")
        self.host = host
        self.wait_ms = wait_ms


class Stopped(Exception):
    """The server stops; no connection is accepted any more."""


class ConnectionQuotas:
    def __init__(self, settings: ServerSettings, address_limits: AddressLimits) -> None:
        self._failed_logins = address_limits.failed_logins
        self._configure(settings)
        self._changed = threading.Condition()
        self._per_host: Counter[str] = Counter()
        self._per_listener: Counter[str] = Counter()
        self._total = 0
        self._address_rates = AddressRates(address_limits, settings.quota_window_ms, settings.quota_windows)
        self._charged_until_s: dict[str, float] = {}
        """Time until which each listener is throttled; the empty name stands for the broker."""
        self._stopped = False

    @property
    def total(self) -> int:
        return self._total

    def admit(self, listener_name: str, host: str) -> bool:
        """Count the connection, and wait for its turn. Return True if another connection must be closed for it."""
        with self._changed:
            self._await_slot(self._listeners[listener_name])
            now_ms = int(monotonic() * 1000)
            if wait_ms := self._address_rates.come(host, now_ms) or self._penalty_ms(listener_name, host, now_ms):
                raise ComesTooOften(host, wait_ms)
            limit = self._settings.max_connections_per_ip_overrides.get(host, self._settings.max_connections_per_ip)
            if self._per_host[host] >= limit:
                raise TooManyConnections(f"{host} has {limit} connections already")
            self._per_host[host] += 1
            self._per_listener[listener_name] += 1
            self._total += 1
            return self._total > self._settings.max_connections

    def _penalty_ms(self, listener_name: str, host: str, now_ms: int) -> int:
        if self._failed_logins is None or self.is_protected(listener_name):
            return 0
        return self._failed_logins.connected(host, now_ms)

    def login_failed(self, host: str) -> None:
        """Count a connection that ended without a login: a handshake costs as much as a wrong password."""
        if self._failed_logins is not None:
            self._failed_logins.failed(host, int(monotonic() * 1000))

    def flooded(self, host: str) -> None:
        """Take no connection from there for a while: one of its connections held up others."""
        if self._failed_logins is not None:
            self._failed_logins.flooded(host, int(monotonic() * 1000))

    def leave(self, listener_name: str, host: str) -> None:
        with self._changed:
            self._total -= 1
            self._per_listener[listener_name] -= 1
            self._per_host[host] -= 1
            if not self._per_host[host]:
                del self._per_host[host]
            self._changed.notify_all()  # of the acceptors that wait, only those of this listener may go on

    def reconfigure(self, settings: ServerSettings) -> None:
        with self._changed:
            self._configure(settings)
            self._changed.notify_all()

    def _configure(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._listeners = {listener.name: listener for listener in settings.listeners}
        self._rates = {listener.name: self._limited_rates(listener) for listener in settings.listeners}

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def is_protected(self, listener_name: str) -> bool:
        return listener_name == self._settings.inter_broker_listener and len(self._settings.listeners) > 1

    def _await_slot(self, listener: ListenerSettings) -> None:
        while not self._stopped:
            wait_s = self._due_s(listener) - _BURST_S - monotonic()
            if wait_s > 0:
                self._changed.wait(wait_s)
            elif self._is_full(listener):
                self._changed.wait()
            else:
                self._charge(listener)
                return
        raise Stopped

    def _is_full(self, listener: ListenerSettings) -> bool:
        if self._per_listener[listener.name] >= listener.max_connections:
            return True
        return not self.is_protected(listener.name) and self._total >= self._settings.max_connections

    def _limited_rates(self, listener: ListenerSettings) -> dict[str, int]:
        """Connections a second that hold for the listener, by account."""
        rates = {listener.name: listener.max_connection_creation_rate}
        if not self.is_protected(listener.name):
            rates[_BROKER] = self._settings.max_connection_creation_rate
        return {account: rate for account, rate in rates.items() if rate < UNLIMITED}

    def _due_s(self, listener: ListenerSettings) -> float:
        return max([self._charged_until_s.get(account, 0.0) for account in self._rates[listener.name]], default=0.0)

    def _charge(self, listener: ListenerSettings) -> None:
        """Each connection costs 1/rate seconds; an account may be overdrawn by a second, then it has to wait."""
        for account, rate in self._rates[listener.name].items():
            self._charged_until_s[account] = max(self._charged_until_s.get(account, 0.0), monotonic()) + 1 / rate
