"""What each key means, in words. Loaded when somebody asks for documentation, not before.

A text names a key at the beginning of a line and tells about it on the indented lines below.
"""

from functools import cache

from odradek.base.config.deviations import DEVIATIONS
from odradek.base.config.keys import NO_EFFECT

NO_EFFECT_NOTE = "Accepted for compatibility; it has no effect on this broker."


@cache
def broker_documentation() -> dict[str, str]:
    """Documentation of every broker key."""
    from odradek.base.config.docs import (
        general,
        groups,
        log,
        network,
        no_effect,
        odradek,
        replication,
        security,
        zookeeper,
    )

    areas = (general, network, zookeeper, log, replication, groups, security, odradek, no_effect)
    return {name: _with_notes(name, text) for area in areas for name, text in _read(area.TEXT).items()}


@cache
def topic_documentation() -> dict[str, str]:
    """Documentation of every topic key."""
    from odradek.base.config.docs import topic

    return _read(topic.TEXT)


def _with_notes(name: str, text: str) -> str:
    if name in NO_EFFECT:
        return f"{text} {NO_EFFECT_NOTE}"
    if name in DEVIATIONS:
        deviation = DEVIATIONS[name]
        return f"{text} The default differs from Kafka's {deviation.kafka_default}: {deviation.reason}."
    return text


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
