"""One request to an identity provider: bounded in time and size, without redirects and proxies.

https is required; http is taken for this machine's own addresses only. A `file:` URL reads the file.
"""

import http.client
import time
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from odradek.base.errors import ConfigError
from odradek.base.value_classes import dataclass
from odradek.security.oauth_keys import TIMEOUT_MS

BODY_BYTES_MAX = 1 << 20
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_OK = (200, 201)


class RequestFailed(Exception):
    """The provider didn't answer, or answered with an error. The text shows no body: it may have secrets."""

    def __init__(self, message: str, *, may_succeed_later: bool = True) -> None:
        super().__init__(message)
        self.may_succeed_later = may_succeed_later


@dataclass(frozen=True, slots=True)
class ProviderUrl:
    text: str
    host: str
    port: int | None
    path: str
    is_tls: bool
    file: Path | None = None


def provider_url(key: str, text: str) -> ProviderUrl:
    """ConfigError where the URL of this setting can't be used."""
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError:
        raise ConfigError(f"Invalid value {text} for configuration {key}: not a URL") from None
    if parts.scheme == "file" and parts.hostname in (None, "localhost"):
        return ProviderUrl(text, "", None, "", False, Path(unquote(parts.path)))
    host = parts.hostname or ""
    is_allowed = parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)
    if not host or not is_allowed or parts.username is not None:
        raise ConfigError(
            f"Invalid value for configuration {key}: valid are https://HOST…, http://localhost… and file:///PATH, "
            "without user and password"
        )
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return ProviderUrl(text, host, port, path, parts.scheme == "https")


def read_bounded(key: str, path: Path) -> bytes:
    """ConfigError where the file of this setting can't be read."""
    try:
        with path.open("rb") as file:
            data = file.read(BODY_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{key}: {path} can't be read: {error.strerror}") from None
    if len(data) > BODY_BYTES_MAX:
        raise ConfigError(f"{key}: {path} is larger than {BODY_BYTES_MAX} bytes")
    return data


@dataclass(frozen=True, slots=True)
class Provider:
    url: ProviderUrl
    tls_settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Kafka's `ssl.*` names, as options of the login module: what the provider's certificate is verified with."""
    connect_timeout_ms: int = TIMEOUT_MS
    read_timeout_ms: int = TIMEOUT_MS

    def get(self) -> bytes:
        return self._ask("GET", None, {"Accept": "application/json"})

    def post(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        return self._ask("POST", body, headers)

    def _ask(self, method: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
        connection = self._connection()
        try:
            connection.connect()
            connection.sock.settimeout(self.read_timeout_ms / 1000)
            deadline = time.monotonic() + self.read_timeout_ms / 1000
            connection.request(method, self.url.path, body, dict(headers))
            answer = connection.getresponse()
            if answer.status not in _OK:
                may_succeed_later = answer.status >= 500 or answer.status in (408, 429)
                raise RequestFailed(
                    f"{self.url.host} answers {method} with status {answer.status}", may_succeed_later=may_succeed_later
                )
            return _body(answer, deadline)
        except (OSError, http.client.HTTPException) as error:
            detail = getattr(error, "verify_message", None) or error.__class__.__name__
            raise RequestFailed(f"{method} to {self.url.host} failed: {detail}") from None
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        seconds = self.connect_timeout_ms / 1000
        if not self.url.is_tls:
            return http.client.HTTPConnection(self.url.host, self.url.port, timeout=seconds)
        from odradek.security.tls_contexts import client_context

        context = client_context(self.tls_settings)
        return http.client.HTTPSConnection(self.url.host, self.url.port, timeout=seconds, context=context)


def _body(answer: http.client.HTTPResponse, deadline: float) -> bytes:
    data = b""
    while chunk := answer.read1(65_536):
        data += chunk
        if len(data) > BODY_BYTES_MAX:
            raise RequestFailed(f"the answer is larger than {BODY_BYTES_MAX} bytes", may_succeed_later=False)
        if time.monotonic() > deadline:
            raise RequestFailed("the answer takes too long")
    return data
