"""Configuration for DescribeConfigs: each key with its value, the source of the value and the values that it overrides.

The synonyms of a key are all sources that could have set its value, the effective one first. Kafka sorts them by source
and omits those before the key's own name; so a topic's `retention.ms` that comes from `log.retention.hours` has no
synonyms and looks like a default. Tools expect that, so it is the same here.
"""

from collections.abc import Container, Mapping

from odradek.base.config.definition import ConfigKey, ConfigSource, ConfigType, ConfigValue, UpdateMode, format_value
from odradek.base.config.dynamic_checks import dynamic_key
from odradek.base.config.keys import BROKER_KEYS, TOPIC_KEYS
from odradek.base.config.keys.topic import BROKER_SYNONYMS
from odradek.base.config.live_config import LiveConfig
from odradek.base.config.topic_config import effective_values
from odradek.base.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class Synonym:
    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    name: str
    value: str | None
    """None for a missing value, and for a secret."""
    type: ConfigType
    source: ConfigSource
    read_only: bool
    sensitive: bool
    synonyms: tuple[Synonym, ...]


def describe_broker(live: LiveConfig) -> list[ConfigEntry]:
    """Describe every known key, then other settings of the file and dynamic ones."""
    said = {**live.static.originals, **live.of_all, **live.own}
    others = (name for name in said if name not in BROKER_KEYS)
    return [_broker_entry(live, name, said) for name in (*BROKER_KEYS, *others)]


def describe_all_brokers(live: LiveConfig) -> list[ConfigEntry]:
    """Return the dynamic defaults: values set for all brokers while they ran."""
    entries = []
    for name, text in live.of_all.items():
        key = dynamic_key(name)
        sensitive = _is_sensitive(key)
        value = None if sensitive else text
        entries.append(
            ConfigEntry(
                name=name,
                value=value,
                type=key.type if key else ConfigType.UNKNOWN,
                source=ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
                read_only=_is_read_only(name),
                sensitive=sensitive,
                synonyms=(Synonym(name, value, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),),
            )
        )
    return entries


def describe_topic(
    live: LiveConfig, overrides: Mapping[str, str], wanted: Container[str] | None = None
) -> list[ConfigEntry]:
    """Describe every topic key, then overrides that this version doesn't know; `wanted` selects keys."""
    values = effective_values(live.current.topic_defaults, overrides)
    names = (*TOPIC_KEYS, *(name for name in overrides if name not in TOPIC_KEYS))
    return [_topic_entry(live, overrides, values, name) for name in names if wanted is None or name in wanted]


def _broker_entry(live: LiveConfig, name: str, said: Mapping[str, str]) -> ConfigEntry:
    key = BROKER_KEYS.get(name)
    base = key or dynamic_key(name)
    sensitive = _is_sensitive(base)
    value = None if sensitive else format_value(live.current.values[name]) if key else said[name]
    synonyms = _broker_synonyms(live, name, _names_for(name, base), hidden=sensitive)
    return ConfigEntry(
        name=name,
        value=value,
        type=base.type if base else ConfigType.UNKNOWN,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        read_only=_is_read_only(name),
        sensitive=sensitive,
        synonyms=synonyms,
    )


def _topic_entry(
    live: LiveConfig, overrides: Mapping[str, str], values: Mapping[str, ConfigValue], name: str
) -> ConfigEntry:
    key = TOPIC_KEYS.get(name)
    sensitive = _is_sensitive(key)
    value = None if sensitive else format_value(values[name])
    synonyms: tuple[Synonym, ...] = ()
    if name in BROKER_SYNONYMS:
        first = BROKER_SYNONYMS[name][0]
        synonyms = _broker_synonyms(live, first, BROKER_SYNONYMS[name], hidden=sensitive)
    if name in overrides:
        synonyms = (Synonym(name, value, ConfigSource.DYNAMIC_TOPIC_CONFIG), *synonyms)
    return ConfigEntry(
        name=name,
        value=value,
        type=key.type if key else ConfigType.UNKNOWN,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        read_only=False,
        sensitive=sensitive,
        synonyms=synonyms,
    )


def _is_sensitive(key: ConfigKey | None) -> bool:
    """Treat unknown keys as sensitive: their values may be secrets."""
    return key is None or key.sensitive


def _is_read_only(name: str) -> bool:
    """Report a key as Kafka does: every key outside of its own table is read-only, also a throttle that is set only
    while brokers run.
    """
    return name not in BROKER_KEYS or BROKER_KEYS[name].update_mode is UpdateMode.READ_ONLY


# The same setting in several units.
_FAMILIES = (
    BROKER_SYNONYMS["segment.ms"],
    BROKER_SYNONYMS["segment.jitter.ms"],
    BROKER_SYNONYMS["retention.ms"],
)


def _names_for(name: str, base: ConfigKey | None) -> tuple[str, ...]:
    """The broker keys that may give the value of `name`, in order of precedence."""
    if name == "log.flush.interval.ms":
        return BROKER_SYNONYMS["flush.ms"]  # one way only: the scheduler's interval has no synonym
    if base is not None and base.name != name:
        return (name, base.name)
    return next((family for family in _FAMILIES if name in family), (name,))


def _broker_synonyms(live: LiveConfig, name: str, names: tuple[str, ...], *, hidden: bool) -> tuple[Synonym, ...]:
    layers = (
        (ConfigSource.DYNAMIC_BROKER_CONFIG, live.own),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, live.of_all),
        (ConfigSource.STATIC_BROKER_CONFIG, live.static.originals),
        (ConfigSource.DEFAULT_CONFIG, _defaults(names)),
    )
    found = [
        Synonym(other, None if hidden else said[other], source)
        for source, said in layers
        for other in names
        if other in said
    ]
    own = next((position for position, synonym in enumerate(found) if synonym.name == name), len(found))
    return tuple(found[own:])


def _defaults(names: tuple[str, ...]) -> dict[str, str]:
    defaults = {name: format_value(BROKER_KEYS[name].default) for name in names if name in BROKER_KEYS}
    return {name: text for name, text in defaults.items() if text is not None}
