"""The current configuration of a broker: server.properties, overridden by the dynamic defaults of all brokers,
overridden by the dynamic values of this one.

Each change makes a new `BrokerConfig` and calls the listeners. Any thread may read `current`; changes come one at a
time.
"""

import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.definition import ConfigType
from odradek.base.config.dynamic_checks import check_settings, check_step, dynamic_key, understood
from odradek.base.config.keys import DYNAMIC_ONLY_KEYS
from odradek.base.config.support_checks import without_effect
from odradek.base.errors import ConfigError
from odradek.base.logs import get_logger

log = get_logger(__name__)

Settings = Mapping[str, str]
Check = Callable[[Settings, BrokerConfig], None]
"""Check of dynamic values of this broker and of the resulting configuration. ConfigError: they can't be used."""
NOTHING: Settings = MappingProxyType({})


class PasswordCodec(Protocol):
    """Passwords among stored settings."""

    def encoded(self, settings: Settings) -> dict[str, str]: ...

    def decoded(self, settings: Settings) -> dict[str, str]: ...


class PlainPasswords:
    """Settings as they are: for tests, and for settings without passwords."""

    def encoded(self, settings: Settings) -> dict[str, str]:
        return dict(settings)

    def decoded(self, settings: Settings) -> dict[str, str]:
        return dict(settings)


class LiveConfig:
    def __init__(self, static: BrokerConfig) -> None:
        self.static = static
        """Settings of server.properties."""
        self.current = static
        self.own: Settings = NOTHING
        """Valid dynamic settings of this broker."""
        self.of_all: Settings = NOTHING
        """Valid dynamic settings of all brokers."""
        self.on_change: list[Callable[[BrokerConfig, BrokerConfig], None]] = []
        """Listeners, called in order with the former and the new configuration, on the thread that makes the change."""
        self.checks: list[Check] = []
        """Checks of new values of this broker, called before they are stored."""
        self.passwords: PasswordCodec = PlainPasswords()
        self._changing = threading.Lock()

    def check(self, settings: Settings, *, for_all: bool) -> None:
        """Raise ConfigError if the broker can't run with these values in place of the current dynamic ones, its own or
        the default ones.
        """
        check_settings(settings, for_all=for_all)
        own, of_all = (self.own, settings) if for_all else (settings, self.of_all)
        after = self._over_static(own, of_all)
        check_step(self.current, after)
        if not for_all:
            for check in self.checks:
                check(settings, after)

    def adopt(self, own: Settings, of_all: Settings) -> None:
        """Replace the current dynamic values by these, as they are stored. Invalid values are reported and skipped; if
        the others are inconsistent, nothing changes.
        """
        with self._changing:
            self._adopt(_obeyed(self.passwords.decoded(own), for_all=False), _obeyed(of_all, for_all=True))

    def _adopt(self, own: Settings, of_all: Settings) -> None:
        if (own, of_all) == (self.own, self.of_all):
            return
        before = self.current
        try:
            after = self._over_static(own, of_all)
        except ConfigError as error:
            log.error("inconsistent configs refused, the former ones stay", error=str(error))
            return
        self.own, self.of_all, self.current = own, of_all, after
        report(after, logged_before=before)
        for listener in self.on_change:
            try:
                listener(before, after)
            except Exception:
                log.exception("config change could not be applied")

    def _over_static(self, own: Settings, of_all: Settings) -> BrokerConfig:
        settings = {**self.static.originals, **of_all, **own}
        return BrokerConfig.from_properties({k: v for k, v in settings.items() if k not in DYNAMIC_ONLY_KEYS})


def is_password(name: str) -> bool:
    key = dynamic_key(name)
    return key is not None and key.type is ConfigType.PASSWORD


def report(config: BrokerConfig, logged_before: BrokerConfig | None = None) -> None:
    """Log unknown, deprecated and ineffective settings, unless an earlier configuration has them as well."""
    warned = () if logged_before is None else logged_before.warnings
    for warning in config.warnings:
        if warning not in warned:
            log.warning(warning)
    ineffective = {} if logged_before is None else without_effect(logged_before.originals)
    for name, reason in without_effect(config.originals).items():
        if name not in ineffective:
            log.info("config has no effect", key=name, value=config.originals[name], reason=reason)


def _obeyed(settings: Settings, *, for_all: bool) -> dict[str, str]:
    obeyed, faults = understood(settings, for_all=for_all)
    for fault in faults:
        log.error("invalid config ignored", error=fault)
    return obeyed
