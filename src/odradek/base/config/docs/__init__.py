"""Documentation of each key, loaded on first use.

A key is at the beginning of a line; the indented lines below it are its documentation.
"""

from functools import cache

from odradek.base.config.definition import ConfigKey, format_value
from odradek.base.config.deviations import DEVIATIONS
from odradek.base.config.keys import STATIC_KEYS, TOPIC_KEYS
from odradek.base.config.support import NO_EFFECTS, REFUSALS, Support


@cache
def broker_documentation() -> dict[str, str]:
    """Documentation of every key of server.properties: its description, and the differences of this broker."""
    return {
        name: f"{text}{_support(STATIC_KEYS[name])}{_deviation(name)}" for name, text in broker_descriptions().items()
    }


@cache
def topic_documentation() -> dict[str, str]:
    """Documentation of every topic key."""
    return {name: f"{text}{_support(TOPIC_KEYS[name])}" for name, text in topic_descriptions().items()}


@cache
def broker_descriptions() -> dict[str, str]:
    """The meaning of every key of server.properties."""
    from odradek.base.config.docs import (
        general,
        groups,
        internal,
        kraft,
        log,
        network,
        odradek,
        replication,
        security,
        tiered_storage,
        zookeeper,
    )

    areas = (
        general,
        network,
        zookeeper,
        log,
        replication,
        groups,
        security,
        odradek,
        kraft,
        tiered_storage,
        internal,
    )
    return {name: text for area in areas for name, text in _read(area.TEXT).items()}


@cache
def topic_descriptions() -> dict[str, str]:
    """The meaning of every topic key."""
    from odradek.base.config.docs import topic

    return _read(topic.TEXT)


def _support(key: ConfigKey) -> str:
    """Sentences about the support of a key, appended to its description; empty if the key is obeyed."""
    match key.support:
        case Support.REFUSED:
            return f" Refused here unless it is {format_value(key.default) or 'unset'}: {REFUSALS[key.reason].lacks}."
        case Support.NO_EFFECT:
            return f" No effect here: {NO_EFFECTS[key.reason]}."
        case Support.OBEYED:
            return ""


def _deviation(name: str) -> str:
    if name not in DEVIATIONS:
        return ""
    deviation = DEVIATIONS[name]
    return f" The default differs from Kafka's {deviation.kafka_default}: {deviation.reason}."


def _read(text: str) -> dict[str, str]:
    documentation: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith(" "):
            documentation[name] = f"{documentation[name]} {line.strip()}".strip()
        elif line:
            name = line
            documentation[name] = ""
    return documentation
