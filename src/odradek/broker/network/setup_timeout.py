"""Time limit of connecting to another broker: `socket.connection.setup.timeout.ms` and `….max.ms`.

The first attempt gets the former; each failure in a row doubles the limit, up to the latter. A success starts over.
Used by one thread at a time.
"""

from collections.abc import Callable
from typing import Self, TypeVar

from odradek.base.config.broker_config import BrokerConfig
from odradek.client.broker_client import BrokerClient, ConnectionFailed

ClientT = TypeVar("ClientT", bound=BrokerClient)

_DOUBLINGS_MAX = 30


class SetupTimeout:
    def __init__(self, first_ms: int, max_ms: int) -> None:
        self._first_ms = first_ms
        self._max_ms = max(first_ms, max_ms)
        self._failures = 0

    @classmethod
    def of(cls, config: BrokerConfig) -> Self:
        return cls(config.socket_connection_setup_timeout_ms, config.socket_connection_setup_timeout_max_ms)

    @property
    def limit_ms(self) -> int:
        """Of the next attempt."""
        return min(self._first_ms << min(self._failures, _DOUBLINGS_MAX), self._max_ms)

    def connect(self, attempt: Callable[[int], ClientT]) -> ClientT:
        """Make one attempt, which is handed its limit in milliseconds."""
        try:
            connected = attempt(self.limit_ms)
        except ConnectionFailed:
            self._failures += 1
            raise
        self._failures = 0
        return connected
