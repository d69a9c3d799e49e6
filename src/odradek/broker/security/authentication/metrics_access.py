"""Access to the metrics endpoint: TLS with a key store in PEM, and a user with a password."""

import re
import socket
from collections.abc import Callable
from dataclasses import field

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.definition import Password
from odradek.base.errors import ConfigError
from odradek.base.value_classes import dataclass

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_LOGIN = re.compile(r"[^:\s]+:.+")


@dataclass(frozen=True, slots=True)
class MetricsAccess:
    wrap: Callable[[socket.socket], socket.socket] | None = None
    """Function that adds TLS to an accepted connection; None: no TLS."""
    login: str | None = field(default=None, repr=False)
    """USER:PASSWORD; None: no login is needed."""

    @property
    def scheme(self) -> str:
        return "http" if self.wrap is None else "https"


def metrics_access(config: BrokerConfig) -> MetricsAccess:
    """Raise ConfigError if the endpoint would be less secure than its settings require."""
    location, login = config.odradek_metrics_keystore_location, config.get("odradek.metrics.login")
    assert login is None or isinstance(login, Password)
    if login is not None and not _LOGIN.fullmatch(login.value):
        raise ConfigError("odradek.metrics.login is written USER:PASSWORD")
    if login is not None and location is None and config.odradek_metrics_host not in _LOOPBACK:
        raise ConfigError(
            "odradek.metrics.login would cross the network in clear text: set odradek.metrics.keystore.location, or "
            "odradek.metrics.host to 127.0.0.1"
        )
    return MetricsAccess(None if location is None else _tls(str(location)), None if login is None else login.value)


def _tls(location: str) -> Callable[[socket.socket], socket.socket]:
    """The file is read for each connection, so that it can change: scrapes are few."""
    from odradek.security.tls_contexts import server_context

    settings = {"ssl.keystore.type": "PEM", "ssl.keystore.location": location}
    try:
        server_context(settings)
    except ConfigError as error:
        raise ConfigError(f"odradek.metrics.keystore.location: {error}") from None

    def wrap(accepted: socket.socket) -> socket.socket:
        try:
            return server_context(settings).wrap_socket(accepted, server_side=True)
        except ConfigError as error:
            raise OSError(str(error)) from None

    return wrap
