"""Limits of connections per second by address: set by the configuration, read by the acceptor."""

from collections.abc import Mapping

from odradek.broker.quotas.core.failed_logins import FailedLogins


class AddressLimits:
    __slots__ = ("_limits", "failed_logins")

    def __init__(self, failed_logins: FailedLogins | None = None) -> None:
        """`failed_logins`: None without authentication."""
        self.failed_logins = failed_logins
        self._limits: tuple[Mapping[str, float], float | None] = {}, None

    def set(self, limits: Mapping[str, float], default: float | None) -> None:
        """Set the limits of these addresses, and of each other address; None: no limit. Any thread."""
        self._limits = limits, default

    def of(self, address: str) -> float | None:
        limits, default = self._limits
        return limits.get(address, default)
