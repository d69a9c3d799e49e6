"""Connecting to another broker: its time limit, `socket.connection.setup.timeout.ms` and `….max.ms`, and its security,
which is that of the listener.

The first attempt gets the former; each failure in a row doubles the limit, up to the latter. A success starts over.
Used by one thread at a time.
"""

from collections.abc import Callable
from typing import Self, TypeVar

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.listeners import SecurityProtocol
from odradek.broker.security.authentication.listener_settings import inter_broker_settings
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.client.client_security import ClientSecurity

ClientT = TypeVar("ClientT", bound=BrokerClient)

_DOUBLINGS_MAX = 30


class SetupTimeout:
    def __init__(self, first_ms: int, max_ms: int, security: ClientSecurity | None = None) -> None:
        self.security = security
        """None: a PLAINTEXT listener."""
        self._first_ms = first_ms
        self._max_ms = max(first_ms, max_ms)
        self._failures = 0

    @classmethod
    def of(cls, config: BrokerConfig, listener_name: str | None = None) -> Self:
        """`listener_name` where it is not the inter-broker listener."""
        return cls(
            config.socket_connection_setup_timeout_ms,
            config.socket_connection_setup_timeout_max_ms,
            _security(config, listener_name or config.inter_broker_listener_name),
        )

    @property
    def limit_ms(self) -> int:
        """Timeout of the next attempt."""
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


def _security(config: BrokerConfig, listener_name: str) -> ClientSecurity | None:
    listener = next((known for known in config.advertised_listeners if known.name == listener_name), None)
    if listener is None or listener.security_protocol is SecurityProtocol.PLAINTEXT:
        return None
    return ClientSecurity(inter_broker_settings(config, listener_name))
