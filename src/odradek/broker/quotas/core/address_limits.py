"""Limits of connections per second by address: set by the configuration, read by the acceptor."""

from collections.abc import Mapping


class AddressLimits:
    __slots__ = ("_limits",)

    def __init__(self) -> None:
        self._limits: tuple[Mapping[str, float], float | None] = {}, None

    def set(self, limits: Mapping[str, float], default: float | None) -> None:
        """Of these addresses, and of each of the others; None: as many as come. Any thread."""
        self._limits = limits, default

    def of(self, address: str) -> float | None:
        limits, default = self._limits
        return limits.get(address, default)
