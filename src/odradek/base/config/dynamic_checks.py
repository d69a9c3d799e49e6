"""Checks of dynamic broker configs: keys that may change while the broker runs, and by how much. Pure.

A key is set for one broker or for all of them. Kafka's own refusals keep their order and the beginning of their text,
because tools and people look for them. Changes that Kafka supports and this broker doesn't are refused too, instead of
being stored and ignored.
"""

from collections.abc import Iterable, Mapping

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.definition import ConfigKey, UpdateMode
from odradek.base.config.keys import BROKER_KEYS, DYNAMIC_ONLY_KEYS
from odradek.base.config.support import Support
from odradek.base.config.support_checks import LISTENER_PREFIX, key_of, refuse_unsupported
from odradek.base.errors import ConfigError

STORE_KEYS = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
# A pool grows or shrinks in steps, as in Kafka: a larger change may be a mistake.
_RESIZED = (
    "num.io.threads",
    "num.network.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
    "log.cleaner.threads",
)


def check_settings(settings: Mapping[str, str], *, for_all: bool) -> None:
    """Check settings for a running broker: ConfigError if they can't be set. Unknown keys can: they may be a
    plugin's."""
    _refuse("Cannot update these configs dynamically", filter(_is_fixed, settings))
    unlistened = (name for name in settings if name.startswith("ssl.") and name in BROKER_KEYS)
    _refuse("These security configs can be dynamically updated only per-listener using the listener prefix", unlistened)
    for name, text in settings.items():
        if (key := dynamic_key(name)) is not None:
            key.parse(text)
    if for_all:
        of_one = (name for name in settings if _is_of_one_broker(name))
        _refuse("Cannot update these configs at default cluster level, broker id must be specified", of_one)
    refuse_unsupported(settings)
    _refuse("Set these in server.properties and restart the broker", filter(_is_out_of_reach, settings))


def understood(settings: Mapping[str, str], *, for_all: bool) -> tuple[dict[str, str], list[str]]:
    """Split settings of ZooKeeper into the valid ones and the reasons why the others are ignored."""
    obeyed: dict[str, str] = {}
    faults = []
    for name, text in settings.items():
        try:
            check_settings({name: text}, for_all=for_all)
            obeyed[name] = text
        except ConfigError as error:
            faults.append(str(error))
    return obeyed, faults


def check_step(before: BrokerConfig, after: BrokerConfig) -> None:
    """Check a change of a pool: ConfigError if a running broker can't make it in one step."""
    for name in _RESIZED:
        now, wanted = before.integer(name), after.integer(name)
        if now == wanted:
            continue
        failed = f"Dynamic thread count update validation failed for {name}={wanted}, value should"
        if wanted < 1:
            raise ConfigError(f"{failed} be at least 1")
        if wanted > now * 2:
            raise ConfigError(f"{failed} not be greater than double the current value {now}")
        if wanted < now // 2:
            raise ConfigError(f"{failed} be at least half the current value {now}")
    if after.max_connection_creation_rate <= 0:
        raise ConfigError(f"Invalid max.connection.creation.rate {after.max_connection_creation_rate}")


def dynamic_key(name: str) -> ConfigKey | None:
    return DYNAMIC_ONLY_KEYS.get(name) or key_of(name)


def _refuse(why: str, names: Iterable[str]) -> None:
    if refused := ", ".join(names):
        raise ConfigError(f"{why}: Set({refused})")


def _is_fixed(name: str) -> bool:
    return name in BROKER_KEYS and BROKER_KEYS[name].update_mode is UpdateMode.READ_ONLY


def _is_of_one_broker(name: str) -> bool:
    key = key_of(name)
    return key is not None and key.update_mode is not UpdateMode.CLUSTER_WIDE


def _is_out_of_reach(name: str) -> bool:
    """Listeners, and the settings of one of them; not the stores of one that has TLS.

    A key without effect is taken, as in server.properties: librdkafka's tests set one of Kerberos.
    """
    if store_setting(name) is not None or _has_no_effect(name):
        return False
    return _is_of_one_broker(name) or name.startswith(LISTENER_PREFIX)


def _has_no_effect(name: str) -> bool:
    return name in BROKER_KEYS and BROKER_KEYS[name].support is Support.NO_EFFECT


def store_setting(name: str) -> tuple[str, str] | None:
    """Listener, in lower case, and key of a setting of its key store or trust store."""
    if not name.startswith(LISTENER_PREFIX):
        return None
    listener, _, key = name.removeprefix(LISTENER_PREFIX).partition(".")
    return (listener, key) if key in STORE_KEYS else None
