"""Bearer tokens of a client: from a file, from a token endpoint by client credentials, or unsecured, as Kafka's login
module makes them.

    sasl.oauthbearer.token.endpoint.url=https://issuer.example/token
    sasl.jaas.config=…OAuthBearerLoginModule required clientId="…" clientSecret="…" scope="…" extension_NAME="…";

A token is kept until the part of its life is over that `sasl.login.refresh.*` tell.
"""

import json
import random
import threading
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from odradek.base.config.login_classes import HANDLERS, LOGIN_HANDLER_KEY, LOGINS, UNSECURED_LOGIN
from odradek.base.errors import ConfigError
from odradek.base.value_classes import dataclass
from odradek.security.https import Provider, RequestFailed, provider_url, read_bounded
from odradek.security.oauth_keys import ENDPOINT_KEY, LOGIN_NUMBERS, TIMEOUT_MS
from odradek.security.oauth_messages import extensions_of
from odradek.security.stores import TLS_KEYS

_CLAIM, _LIFETIME = "unsecuredLoginStringClaim_", "unsecuredLoginLifetimeSeconds"
_RESERVED_CLAIMS = ("iat", "exp")


class TokenUnavailable(Exception):
    """No token could be had. The text says why and shows no secret."""


@dataclass(frozen=True, slots=True)
class RefreshRules:
    window_factor: float = 0.8
    jitter: float = 0.05
    min_period_s: float = 60
    buffer_s: float = 300

    def due_ms(self, begins_ms: int, expires_ms: int, chance: float) -> int:
        """Time of a token's refresh. `chance`, from 0 to 1, spreads many clients. Period and buffer count where the
        token lives longer than both, as in Kafka."""
        lifetime_ms = expires_ms - begins_ms
        due_ms = begins_ms + lifetime_ms * min(1.0, self.window_factor + self.jitter * chance)
        if lifetime_ms > (self.min_period_s + self.buffer_s) * 1000:
            due_ms = min(due_ms, expires_ms - self.buffer_s * 1000)
            due_ms = max(due_ms, begins_ms + self.min_period_s * 1000)
        return int(due_ms)


class TokenSource:
    """Tokens of one login. Thread-safe: a token is retrieved once for all who wait for it."""

    def __init__(self, retrieve: Callable[[], str], extensions: Mapping[str, str], rules: RefreshRules) -> None:
        self.extensions = extensions
        self._retrieve = retrieve
        self._rules = rules
        self._lock = threading.Lock()
        self._token: str | None = None
        self._due_ms = 0

    def token(self) -> str:
        """TokenUnavailable where none can be had, and the former one is due."""
        from odradek.security.jwt import TokenRefused, lifetime_of  # and with it cryptography

        with self._lock:
            if self._token is None or _now_ms() >= self._due_ms:
                token = self._retrieve()
                try:
                    issued_ms, expires_ms = lifetime_of(token)
                except TokenRefused as error:
                    raise TokenUnavailable(f"the token can't be used: {error}") from None
                begins_ms = _now_ms() if issued_ms is None else issued_ms
                self._token = token
                self._due_ms = self._rules.due_ms(begins_ms, expires_ms, random.random())
            return self._token


def token_source(settings: Mapping[str, str], options: Mapping[str, str]) -> TokenSource:
    """Source that settings and options of the login module describe. ConfigError names what is missing."""
    numbers = {key: _number(settings, key, default) for key, default in LOGIN_NUMBERS.items()}
    rules = RefreshRules(
        numbers["sasl.login.refresh.window.factor"],
        numbers["sasl.login.refresh.window.jitter"],
        numbers["sasl.login.refresh.min.period.seconds"],
        numbers["sasl.login.refresh.buffer.seconds"],
    )
    handler = (settings.get(LOGIN_HANDLER_KEY) or "").strip()
    if handler and handler not in HANDLERS[LOGIN_HANDLER_KEY]:
        raise ConfigError(
            f"Invalid value {handler} for configuration {LOGIN_HANDLER_KEY}: not supported. Valid here: "
            f"{', '.join(HANDLERS[LOGIN_HANDLER_KEY])}."
        )
    endpoint = (settings.get(ENDPOINT_KEY) or "").strip()
    if handler == UNSECURED_LOGIN or (not handler and not endpoint and any(o.startswith("unsecured") for o in options)):
        claims, lifetime_s = _unsecured_claims(options)
        extensions = extensions_of(options, "unsecuredLoginExtension_")
        return TokenSource(lambda: _unsecured_token(claims, lifetime_s), extensions, rules)
    if not endpoint:
        raise ConfigError(f"OAUTHBEARER needs {ENDPOINT_KEY}, with {LOGIN_HANDLER_KEY}={LOGINS[0]}")
    retrieve = _retriever(endpoint, options, numbers)
    return TokenSource(retrieve, extensions_of(options, "extension_"), rules)


def _number(settings: Mapping[str, str], key: str, default: float) -> float:
    text = (settings.get(key) or "").strip()
    try:
        value = float(text) if text else default
    except ValueError:
        value = -1
    if not 0 <= value < 1 << 62:
        raise ConfigError(f"Invalid value {text} for configuration {key}: not a number of 0 or more")
    return value


def _retriever(endpoint: str, options: Mapping[str, str], numbers: Mapping[str, float]) -> Callable[[], str]:
    url = provider_url(ENDPOINT_KEY, endpoint)
    if url.file is not None:
        file = url.file
        return lambda: _from_file(lambda: read_bounded(ENDPOINT_KEY, file))
    user, secret = options.get("clientId", "").strip(), options.get("clientSecret", "").strip()
    if not user or not secret:
        raise ConfigError("sasl.jaas.config needs clientId and clientSecret for the token endpoint")
    provider = Provider(
        url,
        {key: options[key] for key in TLS_KEYS if key in options},
        int(numbers["sasl.login.connect.timeout.ms"]) or TIMEOUT_MS,
        int(numbers["sasl.login.read.timeout.ms"]) or TIMEOUT_MS,
    )
    form = {"grant_type": "client_credentials"}
    if scope := options.get("scope", "").strip():
        form["scope"] = scope
    headers = {
        "Accept": "application/json",
        "Authorization": "Basic " + b64encode(f"{user}:{secret}".encode()).decode(),
        "Cache-Control": "no-cache",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    pause_ms, max_ms = numbers["sasl.login.retry.backoff.ms"], numbers["sasl.login.retry.backoff.max.ms"]
    return lambda: _access_token(_retried(lambda: provider.post(urlencode(form).encode(), headers), pause_ms, max_ms))


def _retried(ask: Callable[[], bytes], pause_ms: float, max_ms: float) -> bytes:
    """Attempts with doubling pauses, until the pauses together would be longer than `max_ms`."""
    waited_ms = 0.0
    while True:
        try:
            return ask()
        except RequestFailed as failure:
            if not failure.may_succeed_later or pause_ms <= 0 or waited_ms + pause_ms > max_ms:
                raise TokenUnavailable(f"no token: {failure}") from None
        time.sleep(pause_ms / 1000)
        waited_ms, pause_ms = waited_ms + pause_ms, pause_ms * 2


def _access_token(body: bytes) -> str:
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    token = answer.get("access_token") if isinstance(answer, dict) else None
    if not isinstance(token, str) or not token.strip():
        raise TokenUnavailable("the answer of the token endpoint has no access_token")
    return token.strip()


def _from_file(read: Callable[[], bytes]) -> str:
    try:
        return read().decode("ascii").strip()
    except ConfigError as error:
        raise TokenUnavailable(str(error)) from None
    except UnicodeDecodeError:
        raise TokenUnavailable("the file has no token") from None


def _unsecured_claims(options: Mapping[str, str]) -> tuple[dict[str, Any], int]:
    other = [name for name in options if name.startswith(("unsecuredLoginNumberClaim_", "unsecuredLoginListClaim_"))]
    if other:
        raise ConfigError(f"sasl.jaas.config: {other[0]} is not supported; claims of unsecured tokens are texts here")
    claims = {name.removeprefix(_CLAIM): value for name, value in options.items() if name.startswith(_CLAIM)}
    principal = options.get("unsecuredLoginPrincipalClaimName", "").strip() or "sub"
    if not claims.get(principal) or any(name in claims for name in _RESERVED_CLAIMS):
        raise ConfigError(f"sasl.jaas.config needs {_CLAIM}{principal}, and can't set iat and exp")
    lifetime = options.get(_LIFETIME, "3600").strip()
    if not lifetime.isdecimal() or not 0 < int(lifetime) < 1 << 31:
        raise ConfigError(f"sasl.jaas.config: {_LIFETIME} is not a number of seconds")
    return dict(claims), int(lifetime)


def _unsecured_token(claims: Mapping[str, Any], lifetime_s: int) -> str:
    now_s = _now_ms() / 1000
    parts = ({"alg": "none"}, {**claims, "iat": now_s, "exp": now_s + lifetime_s})
    return ".".join(urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


def _now_ms() -> int:
    return int(time.time() * 1000)
