"""Security of one listener that is not PLAINTEXT: TLS, SASL, or both."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from odradek.base.value_classes import dataclass
from odradek.broker.security.authentication.sasl_session import SaslListener

if TYPE_CHECKING:
    from odradek.broker.security.authentication.listener_tls import ListenerTls

RefusalListener = Callable[[str, str, str], None]
"""Listener that gets each refused certificate of a client: the listener's name, the client's address, the reason."""


def ignore_refusal(listener: str, host: str, reason: str) -> None:
    """A listener that does nothing."""


@dataclass(frozen=True, slots=True)
class ListenerSecurity:
    tls: "ListenerTls | None"
    sasl: SaslListener | None
