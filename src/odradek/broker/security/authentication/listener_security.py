"""Security of one listener that is not PLAINTEXT: TLS, SASL, or both."""

from typing import TYPE_CHECKING

from odradek.base.value_classes import dataclass
from odradek.broker.security.authentication.sasl_session import SaslListener

if TYPE_CHECKING:
    from odradek.broker.security.authentication.listener_tls import ListenerTls


@dataclass(frozen=True, slots=True)
class ListenerSecurity:
    tls: "ListenerTls | None"
    sasl: SaslListener | None
