"""OAUTHBEARER of one listener, from Kafka's `sasl.oauthbearer.*`.

Without a source of keys the broker doesn't start (CVE-2026-33557): unsecured tokens are taken only where Kafka's
handler for them is named.
"""

from collections.abc import Mapping

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.definition import ConfigValue
from odradek.base.config.keys import BROKER_KEYS
from odradek.base.config.login_classes import UNSECURED_VALIDATOR, VALIDATORS
from odradek.base.errors import ConfigError
from odradek.broker.security.authentication.issuer_keys import (
    JWKS_KEY,
    FetchedKeys,
    FileKeys,
    IssuerKeys,
    RefreshTimes,
)
from odradek.broker.security.authentication.oauth_server import (
    OAuthBearerServer,
    Validate,
    signed_tokens,
    unsecured_tokens,
)
from odradek.security.https import Provider, provider_url
from odradek.security.jwt import TokenRules
from odradek.security.oauth_keys import OAUTH_CLIENT_KEYS
from odradek.security.stores import TLS_KEYS

MECHANISM = "OAUTHBEARER"
_HANDLER_KEY = "sasl.server.callback.handler.class"


class OAuthListener:
    """Tokens of one listener: `new_server` for each exchange, and the keys, which have to be started."""

    def __init__(self, config: BrokerConfig, listener_name: str, options: Mapping[str, str], clock: Clock) -> None:
        """Raise ConfigError that names the missing setting."""
        self.keys: IssuerKeys | None = None
        handler = (oauth_text(config, listener_name, _HANDLER_KEY) or "").strip()
        if handler == UNSECURED_VALIDATOR:
            self._validate: Validate = unsecured_tokens(_unsecured_rules(options), clock.now_ms)
            return
        url = (oauth_text(config, listener_name, JWKS_KEY) or "").strip()
        if not url:
            raise ConfigError(
                f"OAUTHBEARER needs {JWKS_KEY}, with {_HANDLER_KEY}={VALIDATORS[0]}; unsecured tokens, which "
                f"anybody can make, need {_HANDLER_KEY}={UNSECURED_VALIDATOR}"
            )
        provider = Provider(provider_url(JWKS_KEY, url), {key: options[key] for key in TLS_KEYS if key in options})
        if provider.url.file is not None:
            self.keys = FileKeys(provider, listener_name)
        else:
            self.keys = FetchedKeys(provider, listener_name, _times(config, listener_name), clock)
        self._validate = signed_tokens(self.keys, _rules(config, listener_name), clock.now_ms)

    def new_server(self) -> OAuthBearerServer:
        return OAuthBearerServer(self._validate)


def oauth_text(config: BrokerConfig, listener_name: str, key: str) -> str | None:
    """The text of a setting: of listener and mechanism, of the listener, or of the broker."""
    prefix = f"listener.name.{listener_name.lower()}."
    names = (f"{prefix}{MECHANISM.lower()}.{key}", f"{prefix}{key}", key)
    return next((text for name in names if (text := config.originals.get(name)) is not None), None)


def oauth_client_settings(config: BrokerConfig, listener_name: str) -> dict[str, str]:
    """Settings of the tokens with which this broker logs in to others."""
    found = {key: oauth_text(config, listener_name, key) for key in OAUTH_CLIENT_KEYS}
    return {key: text for key, text in found.items() if text is not None}


def _value(config: BrokerConfig, listener_name: str, key: str) -> ConfigValue:
    text = oauth_text(config, listener_name, key)
    return BROKER_KEYS[key].default if text is None else BROKER_KEYS[key].parse(text)


def _number(config: BrokerConfig, listener_name: str, key: str) -> int:
    value = _value(config, listener_name, key)
    assert isinstance(value, int)
    if value < 0:
        raise ConfigError(f"Invalid value {value} for configuration {key}: must be at least 0")
    return value


def _times(config: BrokerConfig, listener_name: str) -> RefreshTimes:
    return RefreshTimes(
        max(1000, _number(config, listener_name, "sasl.oauthbearer.jwks.endpoint.refresh.ms")),
        max(10, _number(config, listener_name, "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms")),
        _number(config, listener_name, "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
    )


def _rules(config: BrokerConfig, listener_name: str) -> TokenRules:
    audiences = _value(config, listener_name, "sasl.oauthbearer.expected.audience")
    issuer = _value(config, listener_name, "sasl.oauthbearer.expected.issuer")
    return TokenRules(
        frozenset(audiences) if isinstance(audiences, tuple) else frozenset(),
        None if issuer is None else str(issuer),
        _number(config, listener_name, "sasl.oauthbearer.clock.skew.seconds"),
        str(_value(config, listener_name, "sasl.oauthbearer.scope.claim.name")),
        str(_value(config, listener_name, "sasl.oauthbearer.sub.claim.name")),
    )


def _unsecured_rules(options: Mapping[str, str]) -> TokenRules:
    def option(name: str, default: str) -> str:
        return options.get(f"unsecuredValidator{name}", "").strip() or default

    skew_ms = option("AllowableClockSkewMs", "0")
    if not skew_ms.isdecimal():
        raise ConfigError("sasl.jaas.config: unsecuredValidatorAllowableClockSkewMs is not a number of 0 or more")
    return TokenRules(
        clock_skew_s=int(skew_ms) / 1000,
        scope_claim=option("ScopeClaimName", "scope"),
        principal_claim=option("PrincipalClaimName", "sub"),
        required_scopes=frozenset(option("RequiredScope", "").split()),
        requires_issue_time=False,
        takes_any_audience=True,
    )
