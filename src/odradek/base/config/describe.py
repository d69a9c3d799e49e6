"""Configuration as DescribeConfigs tells it: each key with its value, where that comes from and what it overrides.

A key's synonyms are all the places that could have given its value, the winning one first. Kafka lists them by source
and leaves out whatever stands before the key's own name; so a topic's `retention.ms` that comes from
`log.retention.hours` has no synonyms and looks like a default. Tools know it that way, so it is the same here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from odradek.base.config.broker_config import BrokerConfig, key_of
from odradek.base.config.definition import ConfigKey, ConfigSource, ConfigType, ConfigValue, UpdateMode, format_value
from odradek.base.config.keys import BROKER_KEYS, DYNAMIC_ONLY_KEYS, TOPIC_KEYS
from odradek.base.config.keys.topic import BROKER_SYNONYMS
from odradek.base.config.topic_config import effective_values


@dataclass(frozen=True, slots=True)
class Synonym:
    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    name: str
    value: str | None
    """None where there is none, and where it is a secret."""
    type: ConfigType
    source: ConfigSource
    read_only: bool
    sensitive: bool
    synonyms: tuple[Synonym, ...]


def describe_broker(
    config: BrokerConfig, own: Mapping[str, str] | None = None, of_all: Mapping[str, str] | None = None
) -> list[ConfigEntry]:
    """Every known key, then what else the file said, then what was set while the broker ran: for it, and for all."""
    others = (name for name in config.originals if name not in BROKER_KEYS)
    entries = [_broker_entry(config, name) for name in (*BROKER_KEYS, *others)]
    return entries + describe_dynamic(own or {}, of_all or {})


def describe_dynamic(own: Mapping[str, str], of_all: Mapping[str, str]) -> list[ConfigEntry]:
    """What was set for a broker while it ran, and for all of them; its own comes first."""
    entries = []
    for name in DYNAMIC_ONLY_KEYS.keys() & (own.keys() | of_all.keys()):
        synonyms = (
            *((Synonym(name, own[name], ConfigSource.DYNAMIC_BROKER),) if name in own else ()),
            *((Synonym(name, of_all[name], ConfigSource.DYNAMIC_DEFAULT_BROKER),) if name in of_all else ()),
        )
        first = synonyms[0]
        entries.append(
            ConfigEntry(
                name=name,
                value=first.value,
                type=DYNAMIC_ONLY_KEYS[name].type,
                source=first.source,
                read_only=False,
                sensitive=False,
                synonyms=synonyms,
            )
        )
    return sorted(entries, key=lambda entry: entry.name)


def describe_topic(config: BrokerConfig, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Every topic key, then overrides that this version doesn't know."""
    values = effective_values(config.topic_defaults, overrides)
    unknown = (name for name in overrides if name not in TOPIC_KEYS)
    return [_topic_entry(config, overrides, values, name) for name in (*TOPIC_KEYS, *unknown)]


def _broker_entry(config: BrokerConfig, name: str) -> ConfigEntry:
    key = BROKER_KEYS.get(name)
    base = key or key_of(name)
    sensitive = _is_sensitive(base)
    value = None if sensitive else format_value(config.values[name]) if key else config.originals[name]
    synonyms = _broker_synonyms(config, name, _names_for(name, base), hidden=sensitive)
    return ConfigEntry(
        name=name,
        value=value,
        type=base.type if base else ConfigType.UNKNOWN,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        read_only=key is None or key.update_mode is UpdateMode.READ_ONLY,
        sensitive=sensitive,
        synonyms=synonyms,
    )


def _topic_entry(
    config: BrokerConfig, overrides: Mapping[str, str], values: Mapping[str, ConfigValue], name: str
) -> ConfigEntry:
    key = TOPIC_KEYS.get(name)
    sensitive = _is_sensitive(key)
    value = None if sensitive else format_value(values[name])
    synonyms: tuple[Synonym, ...] = ()
    if name in BROKER_SYNONYMS:
        first = BROKER_SYNONYMS[name][0]
        synonyms = _broker_synonyms(config, first, BROKER_SYNONYMS[name], hidden=sensitive)
    if name in overrides:
        synonyms = (Synonym(name, value, ConfigSource.TOPIC), *synonyms)
    return ConfigEntry(
        name=name,
        value=value,
        type=key.type if key else ConfigType.UNKNOWN,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        read_only=False,
        sensitive=sensitive,
        synonyms=synonyms,
    )


def _is_sensitive(key: ConfigKey | None) -> bool:
    """What nobody knows may be a secret."""
    return key is None or key.sensitive


# The same setting in several units.
_FAMILIES = (
    BROKER_SYNONYMS["segment.ms"],
    BROKER_SYNONYMS["segment.jitter.ms"],
    BROKER_SYNONYMS["retention.ms"],
)


def _names_for(name: str, base: ConfigKey | None) -> tuple[str, ...]:
    """The broker keys that may give the value of `name`, in order of precedence."""
    if name == "log.flush.interval.ms":
        return BROKER_SYNONYMS["flush.ms"]  # not a family: the scheduler's interval has no synonym
    if base is not None and base.name != name:
        return (name, base.name)
    return next((family for family in _FAMILIES if name in family), (name,))


def _broker_synonyms(config: BrokerConfig, name: str, names: tuple[str, ...], *, hidden: bool) -> tuple[Synonym, ...]:
    found = [
        Synonym(other, None if hidden else config.originals[other], ConfigSource.STATIC_BROKER)
        for other in names
        if other in config.originals
    ]
    for other in names:
        default = BROKER_KEYS[other].default if other in BROKER_KEYS else None
        if default is not None:
            found.append(Synonym(other, None if hidden else format_value(default), ConfigSource.DEFAULT))
    own = next((position for position, synonym in enumerate(found) if synonym.name == name), len(found))
    return tuple(found[own:])
