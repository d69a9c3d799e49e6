"""Security of the listeners, from the broker's configuration.

A listener that can't be secured as its settings say stops the broker's start: nothing is served with less.
"""

import hmac
import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

from odradek.base.clock import SYSTEM_CLOCK, Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.definition import Password
from odradek.base.config.dynamic_checks import store_setting
from odradek.base.config.listeners import Listener, SecurityProtocol
from odradek.base.config.live_config import LiveConfig
from odradek.base.errors import ConfigError
from odradek.base.metrics import Registry, Sample
from odradek.base.scheduler import Scheduler
from odradek.broker.security.authentication.listener_security import ListenerSecurity, RefusalListener, ignore_refusal
from odradek.broker.security.authentication.mechanisms import (
    PlainServer,
    ScramServer,
    ScramSettings,
    ServerFactory,
    TokenLookup,
)
from odradek.broker.security.authentication.sasl_session import SaslListener
from odradek.broker.security.credential_store import CredentialStore, KnownCredentials
from odradek.broker.security.known_tokens import token_secret_key
from odradek.client.client_security import ClientSecurity
from odradek.security.jaas import login_module
from odradek.security.kerberos_keys import SERVICE_KEY
from odradek.security.scram import HASH_OF_MECHANISM
from odradek.security.stores import TLS_KEYS

if TYPE_CHECKING:
    from odradek.broker.security.authentication.issuer_keys import IssuerKeys

SUPPORTED_MECHANISMS = ("PLAIN", *HASH_OF_MECHANISM, "OAUTHBEARER", "GSSAPI")
_TLS_PROTOCOLS = (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)
_RELOAD_CHECK_MS = 5_000
_SASL_PROTOCOLS = (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


def secured_listeners(
    config: BrokerConfig,
    credentials: CredentialStore,
    clock: Clock,
    tokens: TokenLookup | None = None,
    on_refused: RefusalListener = ignore_refusal,
) -> dict[str, ListenerSecurity]:
    """Return the security of each listener that is not PLAINTEXT, by its name. ConfigError names a setting that is
    missing or invalid."""
    return {
        listener.name: _secured(config, listener, credentials, clock, tokens, on_refused)
        for listener in config.listeners
        if listener.security_protocol is not SecurityProtocol.PLAINTEXT
    }


def check_listeners(config: BrokerConfig) -> None:
    """Check before anything is begun: ConfigError where a listener can't be secured, or other brokers can't be
    reached."""
    if any(listener.security_protocol is not SecurityProtocol.PLAINTEXT for listener in config.listeners):
        secured_listeners(config, KnownCredentials(), SYSTEM_CLOCK)
        ClientSecurity(inter_broker_settings(config, config.inter_broker_listener_name))


def watch_certificates(listeners: Mapping[str, ListenerSecurity], scheduler: Scheduler, metrics: Registry) -> None:
    """Use changed certificate files, and report the ends of certificates as a metric."""
    secured = {name: security.tls for name, security in listeners.items() if security.tls is not None}
    if not secured:
        return
    scheduler.every("certificates", _RELOAD_CHECK_MS, lambda: [tls.reload() for tls in secured.values()])
    name = "odradek_certificate_expiry_timestamp_seconds"
    metrics.add(
        lambda: [Sample(name, "gauge", tls.expires_s, {"listener": listener}) for listener, tls in secured.items()],
        [name],
    )


def follow_store_changes(listeners: Mapping[str, ListenerSecurity], live: LiveConfig) -> None:
    """Use stores that kafka-configs sets, and refuse unusable ones before they are stored."""

    def check(settings: Mapping[str, str], after: BrokerConfig) -> None:
        live.passwords.encoded(settings)
        named = {found[0] for name in settings if (found := store_setting(name)) is not None}
        for listener in after.listeners:
            if listener.name.lower() not in named:
                continue
            security = listeners.get(listener.name)
            changed = _tls_settings(after, listener) != _tls_settings(live.current, listener)
            if (
                security is None
                or security.tls is None
                or (changed and listener.name == after.inter_broker_listener_name)
            ):
                raise ConfigError(
                    "Set these in server.properties and restart the broker: stores of a listener can change while it "
                    "runs where it has TLS and is not the one between brokers; there, replace the file: "
                    f"Set(listener.name.{listener.name.lower()})"
                )
            security.tls.check(_tls_settings(after, listener))

    def replace(before: BrokerConfig, after: BrokerConfig) -> None:
        for listener in after.listeners:
            security = listeners.get(listener.name)
            if security is not None and security.tls is not None:
                security.tls.replace(_tls_settings(after, listener))

    live.checks.append(check)
    live.on_change.append(replace)


def start_issuer_keys(listeners: Mapping[str, ListenerSecurity], started: ExitStack) -> None:
    """Keep the keys of token issuers up to date until the broker stops."""
    for security in listeners.values():
        if security.sasl is not None and security.sasl.issuer_keys is not None:
            security.sasl.issuer_keys.start()
            started.callback(security.sasl.issuer_keys.stop)


def listener_texts(config: BrokerConfig, listener_name: str, keys: tuple[str, ...]) -> dict[str, str]:
    """Return the texts of settings, those of the listener before those of the broker; unset ones are left out."""
    originals, prefix = config.originals, f"listener.name.{listener_name.lower()}."
    found = {key: originals.get(prefix + key, originals.get(key)) for key in keys}
    return {key: text for key, text in found.items() if text is not None}


def jaas_config(config: BrokerConfig, listener_name: str, mechanism: str) -> tuple[str, str]:
    """Key and text of a mechanism's login module, which each listener has for itself."""
    key = f"listener.name.{listener_name.lower()}.{mechanism.lower()}.sasl.jaas.config"
    text = config.originals.get(key)
    if text is None:
        raise ConfigError(f"{mechanism} is in sasl.enabled.mechanisms and needs {key}")
    return key, text


def enabled_mechanisms(config: BrokerConfig, listener_name: str) -> tuple[str, ...]:
    """ConfigError for a mechanism that can't be had."""
    value = config.for_listener(listener_name, "sasl.enabled.mechanisms")
    assert isinstance(value, tuple)
    for mechanism in value:
        if mechanism not in SUPPORTED_MECHANISMS:
            raise ConfigError(
                f"Invalid value {mechanism} for configuration sasl.enabled.mechanisms of listener {listener_name}: not "
                f"supported. Valid here: {', '.join(SUPPORTED_MECHANISMS)}."
            )
    if not value:
        raise ConfigError(f"sasl.enabled.mechanisms of listener {listener_name} is empty")
    return value


def _secured(
    config: BrokerConfig,
    listener: Listener,
    credentials: CredentialStore,
    clock: Clock,
    tokens: TokenLookup | None,
    on_refused: RefusalListener,
) -> ListenerSecurity:
    tls = sasl = None
    try:
        if listener.security_protocol in _TLS_PROTOCOLS:
            from odradek.broker.security.authentication.listener_tls import ListenerTls  # and with it ssl: milliseconds

            settings = _tls_settings(config, listener)
            rules = config.for_listener(listener.name, "ssl.principal.mapping.rules")
            tls = ListenerTls(
                listener.name,
                settings,
                str(rules),
                allow_dn_changes=config.for_listener(listener.name, "ssl.allow.dn.changes") is True,
                allow_san_changes=config.for_listener(listener.name, "ssl.allow.san.changes") is True,
                on_refused=on_refused,
            )
        if listener.security_protocol in _SASL_PROTOCOLS:
            sasl = _sasl_listener(config, listener.name, credentials, clock, tokens)
    except ConfigError as error:
        raise ConfigError(f"listener {listener.name}: {error}") from None
    return ListenerSecurity(tls, sasl)


def _tls_settings(config: BrokerConfig, listener: Listener) -> dict[str, str]:
    """Ask for certificates on SASL_SSL only where the listener's own setting says so, as Kafka does."""
    settings = listener_texts(config, listener.name, TLS_KEYS)
    if listener.security_protocol is SecurityProtocol.SASL_SSL:
        own = config.originals.get(f"listener.name.{listener.name.lower()}.ssl.client.auth")
        settings["ssl.client.auth"] = "none" if own is None else own
    return settings


def _sasl_listener(
    config: BrokerConfig,
    listener_name: str,
    credentials: CredentialStore,
    clock: Clock,
    tokens: TokenLookup | None,
) -> SaslListener:
    secret = _decoy_secret(config)
    factories: dict[str, ServerFactory] = {}
    keys: IssuerKeys | None = None
    for mechanism in enabled_mechanisms(config, listener_name):
        if mechanism == "PLAIN":
            factories[mechanism] = _plain(plain_passwords(config, listener_name))
        elif mechanism == "OAUTHBEARER":
            from odradek.broker.security.authentication.oauth_settings import OAuthListener  # and with it cryptography

            key, text = jaas_config(config, listener_name, mechanism)
            tokens_of_issuer = OAuthListener(config, listener_name, login_module(key, text, mechanism).options, clock)
            factories[mechanism], keys = tokens_of_issuer.new_server, tokens_of_issuer.keys
        elif mechanism == "GSSAPI":
            from odradek.broker.security.authentication.gssapi_server import gssapi_servers  # and Kerberos with it

            key, text = jaas_config(config, listener_name, mechanism)
            factories[mechanism] = gssapi_servers(config, listener_name, login_module(key, text, mechanism).options)
        else:
            factories[mechanism] = _scram(ScramSettings(mechanism, credentials, secret, tokens))
    size = config.for_listener(listener_name, "sasl.server.max.receive.size")
    assert isinstance(size, int)
    lifetimes = {mechanism: _max_reauth_ms(config, listener_name, mechanism) for mechanism in factories}
    return SaslListener(factories, lifetimes, size, clock, keys)


def _decoy_secret(config: BrokerConfig) -> bytes:
    """The secret behind the salts of unknown users: the same on each broker where the brokers share one, so that a
    comparison of brokers doesn't tell who exists either."""
    shared = token_secret_key(config)
    return secrets.token_bytes(32) if shared is None else hmac.digest(shared, b"salts of unknown users", "sha256")


def _plain(passwords: Mapping[str, str]) -> ServerFactory:
    return lambda: PlainServer(passwords)


def _scram(settings: ScramSettings) -> ServerFactory:
    return lambda: ScramServer(settings)


def plain_passwords(config: BrokerConfig, listener_name: str) -> dict[str, str]:
    """Users of PLAIN: `user_NAME="PASSWORD"` in the listener's login module."""
    key, text = jaas_config(config, listener_name, "PLAIN")
    options = login_module(key, text, "PLAIN").options
    return {name.removeprefix("user_"): value for name, value in options.items() if name.startswith("user_")}


def _max_reauth_ms(config: BrokerConfig, listener_name: str, mechanism: str) -> int:
    prefix = f"listener.name.{listener_name.lower()}.{mechanism.lower()}."
    text = config.originals.get(f"{prefix}connections.max.reauth.ms")
    if text is not None:
        return int(text)
    value = config.for_listener(listener_name, "connections.max.reauth.ms")
    assert isinstance(value, int)
    return value


def inter_broker_settings(config: BrokerConfig, name: str) -> dict[str, str]:
    """Settings of connections to other brokers by the listener of this name, in the words of a client's file."""
    listener = next(listener for listener in config.advertised_listeners if listener.name == name)
    settings = {"security.protocol": listener.security_protocol.name}
    if listener.security_protocol in _TLS_PROTOCOLS:
        settings |= listener_texts(config, name, TLS_KEYS)
    if listener.security_protocol in _SASL_PROTOCOLS:
        mechanism = config.for_listener(name, "sasl.mechanism.inter.broker.protocol")
        assert not isinstance(mechanism, Password)
        settings["sasl.mechanism"] = str(mechanism)
        settings["sasl.jaas.config"] = jaas_config(config, name, str(mechanism))[1]
        if mechanism == "OAUTHBEARER":
            from odradek.broker.security.authentication.oauth_settings import oauth_client_settings

            settings |= oauth_client_settings(config, name)
        elif mechanism == "GSSAPI":
            settings |= listener_texts(config, name, (SERVICE_KEY,))
    return settings
