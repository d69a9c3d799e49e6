"""Access to a cluster: its address, and the credentials that connections are made with.

With `--login` every session has an access of its own with the user's credentials, so that a page has the user's rights.
An access that is closed, or whose credentials a broker has refused, connects no more.
"""

from collections.abc import Callable, Mapping

from odradek.base.config.listeners import SecurityProtocol
from odradek.base.errors import FatalError
from odradek.client.broker_client import ConnectionFailed
from odradek.client.client_security import ClientSecurity, Login
from odradek.client.cluster_client import ClusterClient

CLIENT_ID = "odradek-console"
_LOGIN_TIMEOUT_MS = 5_000
SESSION_ENDED = "your session has ended: log in again"


class Access:
    """Thread-safe. `security`: otherwise that of the process."""

    def __init__(self, bootstrap: str, security: ClientSecurity | None = None) -> None:
        self.bootstrap = bootstrap
        self.security = security
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        return self._is_closed or (self.security is not None and self.security.is_refused)

    def close(self) -> None:
        self._is_closed = True

    def client(
        self, timeout_ms: int, *, trusted: Callable[[], int | None] = lambda: None, remembers: bool = False
    ) -> ClusterClient:
        """Make a client for one thread. FatalError: the session has ended."""
        if self.is_closed:
            raise FatalError(SESSION_ENDED)
        return ClusterClient(
            self.bootstrap,
            client_id=CLIENT_ID,
            timeout_ms=timeout_ms,
            trusted=trusted,
            remembers=remembers,
            security=self.security,
        )


class ClusterLogin:
    """Logins of cluster users, which the brokers verify."""

    def __init__(self, bootstrap: str, settings: Mapping[str, str]) -> None:
        """`settings`: of a client, without its user. ConfigError or FatalError: no user could log in by them."""
        self._bootstrap = bootstrap
        self._settings = {key: value for key, value in settings.items() if key != "sasl.jaas.config"}
        protocol = ClientSecurity(self._settings, Login("nobody", "")).protocol
        if protocol not in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL):
            raise FatalError("users log in over SASL: set security.protocol=SASL_SSL in the file of --login")

    def verify(self, user: str, password: str) -> Access | None:
        """Return the user's access; None if a broker refuses it. ConnectionFailed: no broker answers. Blocks."""
        security = ClientSecurity(self._settings, Login(user, password))
        access = Access(self._bootstrap, security)
        try:
            with access.client(_LOGIN_TIMEOUT_MS) as client:
                client.brokers()
        except ConnectionFailed:
            if security.is_refused:
                return None
            raise
        return access
