"""Security of a client's connections: the settings of a `client.properties` file, by Kafka's names.

    security.protocol=SASL_SSL
    sasl.mechanism=SCRAM-SHA-512
    sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="…" password="…";
    ssl.truststore.type=PEM
    ssl.truststore.location=/path/ca.pem

The host name of the broker is verified unless `ssl.endpoint.identification.algorithm` is set to nothing.
"""

import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.base.config.listeners import SecurityProtocol, parse_security_protocol
from odradek.base.config.properties import parse_properties
from odradek.base.errors import ConfigError
from odradek.base.value_classes import dataclass
from odradek.security.jaas import login_module
from odradek.security.kerberos_keys import SERVICE_KEY
from odradek.security.oauth_keys import OAUTH_CLIENT_KEYS
from odradek.security.stores import TLS_KEYS, file_marks, store_files

if TYPE_CHECKING:
    import ssl

    from odradek.security.kerberos import ClientCredentials
    from odradek.security.oauth_tokens import TokenSource

# The modules ssl and hashlib are imported where they are needed: milliseconds that most commands don't need.
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
_KEYS = frozenset(
    {*TLS_KEYS, "security.protocol", "sasl.mechanism", "sasl.jaas.config", "ssl.keymanager.algorithm"}
    | {"ssl.trustmanager.algorithm", SERVICE_KEY}
    | set(OAUTH_CLIENT_KEYS)
)
_GUARDED_PREFIXES = ("ssl.", "sasl.", "security.")
Exchange = Callable[[bytes], bytes]
"""Function that sends a token to the broker and returns the answer."""


class AuthenticationRefused(Exception):
    """The broker refuses the credentials, or can't prove that it knows them; the message names the case."""


@dataclass(frozen=True, slots=True)
class Login:
    user: str
    password: str = field(repr=False)


class ClientSecurity:
    """Thread-safe. Made once; each connection takes its context from it, a new one when the files have changed."""

    def __init__(self, settings: Mapping[str, str], login: Login | None = None) -> None:
        """`login`: user and password, instead of `sasl.jaas.config`. ConfigError names a setting that can't be used."""
        unknown = [key for key in settings if key.startswith(_GUARDED_PREFIXES) and key not in _KEYS]
        if unknown:
            raise ConfigError(f"{', '.join(sorted(unknown))}: not supported by this client. Remove the key.")
        self.protocol = parse_security_protocol("security.protocol", settings.get("security.protocol") or "PLAINTEXT")
        self.mechanism: str | None = None
        self.is_refused = False
        """True once a broker has refused the credentials."""
        self._settings = dict(settings)
        self._salted: tuple[bytes, int, bytes] | None = None
        self._lock = threading.Lock()
        self._context: ssl.SSLContext | None = None
        self._marks = file_marks(())
        self._tokens: TokenSource | None = None
        self._tickets: ClientCredentials | None = None
        self._service = ""
        if self.protocol in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL):
            self._read_login(login)
        if self.protocol in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL):
            self._current_context()

    @classmethod
    def from_file(cls, path: Path) -> "ClientSecurity":
        try:
            text = path.read_text("utf-8")
        except OSError as error:
            raise ConfigError(f"{path} can't be read: {error.strerror}") from None
        return cls(parse_properties(text))

    @property
    def is_tls(self) -> bool:
        return self.protocol in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    def wrap(
        self, connected: socket.socket, host: str, begun: Callable[[socket.socket], None] = lambda secured: None
    ) -> socket.socket:
        """Return the connection itself, or TLS over it, after the handshake. OSError where that fails. `begun` gets the
        latter before the handshake: `connected` is of no use from there on.
        """
        if not self.is_tls:
            return connected
        secured = self._current_context().wrap_socket(connected, server_hostname=host, do_handshake_on_connect=False)
        try:
            begun(secured)
            secured.do_handshake()
        except BaseException:
            secured.close()
            raise
        return secured

    def authenticate(self, exchange: Exchange, host: str) -> None:
        """One SASL exchange with the broker of that host; AuthenticationRefused tells why it failed."""
        try:
            self._authenticate(exchange, host)
        except AuthenticationRefused:
            self.is_refused = True
            raise

    def _authenticate(self, exchange: Exchange, host: str) -> None:
        assert self.mechanism is not None
        if self.mechanism == "PLAIN":
            exchange(f"\0{self._user}\0{self._password}".encode())
            return
        if self._tokens is not None:
            _show_token(self._tokens, exchange)
            return
        if self._tickets is not None:
            _show_ticket(self._tickets, self._service, host, exchange)
            return
        import secrets

        from odradek.security.scram import ScramClient, ScramError

        client = ScramClient(
            self.mechanism,
            self._user,
            self._password,
            secrets.token_urlsafe(24),
            token=self._is_token,
            salted_password=self._salted_password,
        )
        try:
            client.verify(exchange(client.final(exchange(client.first()))))
        except ScramError as error:
            raise AuthenticationRefused(str(error)) from None

    def _salted_password(self, hash_name: str, salt: bytes, iterations: int) -> bytes:
        """Salt the password once, not for each connection: every broker has the same salt for a user."""
        from odradek.security.scram import salted_password

        known = self._salted
        if known is None or known[:2] != (salt, iterations):
            known = (salt, iterations, salted_password(hash_name, self._password, salt, iterations))
            self._salted = known
        return known[2]

    def _read_login(self, login: Login | None) -> None:
        mechanism = self._settings.get("sasl.mechanism") or "GSSAPI"
        if mechanism not in MECHANISMS:
            raise ConfigError(
                f"Invalid value {mechanism} for configuration sasl.mechanism: not supported. Valid here: "
                f"{', '.join(MECHANISMS)}."
            )
        self._is_token = False
        if login is not None:
            self.mechanism, self._user, self._password = mechanism, login.user, login.password
            return
        text = self._settings.get("sasl.jaas.config")
        if not text:
            raise ConfigError(f"sasl.jaas.config is required with {self.protocol.name}")
        options = login_module("sasl.jaas.config", text, mechanism).options
        if mechanism == "OAUTHBEARER":
            from odradek.security.oauth_tokens import token_source

            self._tokens = token_source(self._settings, options)
            self.mechanism = mechanism
            return
        if mechanism == "GSSAPI":
            from odradek.security.kerberos import ClientCredentials, service_name

            self._service = service_name(options, self._settings.get(SERVICE_KEY))
            self._tickets = ClientCredentials(options)
            self.mechanism = mechanism
            return
        if not options.get("username") or "password" not in options:
            raise ConfigError("sasl.jaas.config needs username and password")
        self.mechanism = mechanism
        self._user, self._password = options["username"], options["password"]
        self._is_token = options.get("tokenauth", "").lower() == "true"

    def _current_context(self) -> "ssl.SSLContext":
        with self._lock:
            marks = file_marks(store_files(self._settings))
            if self._context is None or marks != self._marks:
                from odradek.security.tls_contexts import client_context

                self._context = client_context(self._settings)
                self._marks = marks
            return self._context


def _show_token(tokens: "TokenSource", exchange: Exchange) -> None:
    from odradek.security.oauth_messages import ACKNOWLEDGED, client_initial
    from odradek.security.oauth_tokens import TokenUnavailable

    try:
        refused = exchange(client_initial(tokens.token(), tokens.extensions))
    except TokenUnavailable as error:
        raise AuthenticationRefused(str(error)) from None
    if refused:
        exchange(ACKNOWLEDGED)
        raise AuthenticationRefused("the broker refused the token")


def _show_ticket(tickets: "ClientCredentials", service: str, host: str, exchange: Exchange) -> None:
    from odradek.security.kerberos import KerberosError, log_in

    try:
        log_in(tickets.initiate(service, host), exchange)
    except KerberosError as error:
        raise AuthenticationRefused(str(error)) from None
