"""Defaults of topics without overrides: the broker's values under the topic keys' names."""

from collections.abc import Mapping

from odradek.base.config.definition import ConfigValue
from odradek.base.config.keys import TOPIC_KEYS
from odradek.base.config.keys.topic import BROKER_SYNONYMS

_MS_PER_UNIT = {"hours": 3_600_000, "minutes": 60_000}
_UNLIMITED_MS = 2**63 - 1


def topic_defaults(broker_values: Mapping[str, ConfigValue]) -> dict[str, ConfigValue]:
    """Every topic key with the value that this broker's configuration gives it."""
    defaults = {name: _from_broker(name, broker_values) for name in TOPIC_KEYS}
    retention_ms = defaults["retention.ms"]
    if isinstance(retention_ms, int) and retention_ms < 0:
        defaults["retention.ms"] = -1
    # Nothing but format 2 is written from inter-broker version 3.0 on, so the configured version doesn't count.
    defaults["message.format.version"] = TOPIC_KEYS["message.format.version"].default
    apply_deprecated_timestamp_limit(defaults)
    return defaults


def apply_deprecated_timestamp_limit(values: dict[str, ConfigValue]) -> None:
    """Apply the older single limit on timestamps if the newer two are unlimited."""
    for newer in ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms"):
        if values[newer] == _UNLIMITED_MS:
            values[newer] = values["message.timestamp.difference.max.ms"]


def _from_broker(name: str, broker_values: Mapping[str, ConfigValue]) -> ConfigValue:
    for synonym in BROKER_SYNONYMS.get(name, ()):
        value = broker_values[synonym]
        if value is not None:
            scale = _MS_PER_UNIT.get(synonym.rpartition(".")[2])
            return value * scale if scale is not None and isinstance(value, int) else value
    return TOPIC_KEYS[name].default
