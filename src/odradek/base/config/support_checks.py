"""Checks of server.properties against the support of its keys: refused, unknown and ineffective settings. Pure."""

from collections.abc import Iterable, Mapping

from odradek.base.config.definition import ConfigKey, format_value
from odradek.base.config.keys import DYNAMIC_ONLY_KEYS, STATIC_KEYS
from odradek.base.config.support import NO_EFFECTS, REFUSALS, Support
from odradek.base.errors import ConfigError

LISTENER_PREFIX = "listener.name."
_PER_LISTENER_PREFIXES = ("ssl.", "sasl.")
_PER_LISTENER = frozenset(
    {
        "connections.max.reauth.ms",
        "max.connection.creation.rate",
        "max.connections",
        "num.network.threads",
        "principal.builder.class",
    }
)
_PER_MECHANISM = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
_SIMILARITY_MIN = 0.8


def key_of(name: str) -> ConfigKey | None:
    """The key that `name` sets, for the whole broker or as `listener.name.<listener>.[<mechanism>.]<key>`."""
    if not name.startswith(LISTENER_PREFIX):
        return STATIC_KEYS.get(name)
    base = name.removeprefix(LISTENER_PREFIX).partition(".")[2]
    base = base.removeprefix("oauthbearer.") if base.startswith("oauthbearer.sasl.") else base
    base = next((key for key in _PER_MECHANISM if base.endswith(f".{key}")), base)
    per_listener = base in _PER_LISTENER or base.startswith(_PER_LISTENER_PREFIXES)
    return STATIC_KEYS.get(base) if per_listener else None


def refuse_unsupported(settings: Mapping[str, str], keys: Mapping[str, ConfigKey] | None = None) -> None:
    """Raise ConfigError if a value asks for something that Kafka does and this broker doesn't.

    `keys`: the definitions, where they are not those of a broker.
    """
    for name, text in settings.items():
        key = key_of(name) if keys is None else keys.get(name)
        if key is not None and key.support is Support.REFUSED:
            _refuse_other_than_default(key, name, text)


def _refuse_other_than_default(key: ConfigKey, name: str, text: str) -> None:
    value = key.parse(text)
    if value == key.default or (key.default is None and text.strip() == ""):
        return
    refusal = REFUSALS[key.reason]
    valid = format_value(key.default) or "no value"
    shown = format_value(value) if key.sensitive else text.strip()
    raise ConfigError(
        f"Invalid value {shown} for configuration {name}: {refusal.lacks}. Valid here: {valid}. {refusal.remedy}"
    )


def without_effect(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings that nothing here reads, each with the reason; those at their default are left out."""
    found = {name: key for name in settings if (key := key_of(name)) is not None}
    return {
        name: NO_EFFECTS[key.reason]
        for name, key in found.items()
        if key.support is Support.NO_EFFECT and key.parse(settings[name]) != key.default
    }


def unknown_settings(settings: Iterable[str], listener_names: Iterable[str]) -> list[str]:
    """One sentence for each name that no definition has, or that belongs to a listener that isn't there."""
    listeners = {name.lower() for name in listener_names}
    warnings = []
    for name in settings:
        if key_of(name) is None:
            warnings.append(f"unknown configuration key {name} is ignored{_suggestion(name)}")
        elif name.startswith(LISTENER_PREFIX):
            listener = name.removeprefix(LISTENER_PREFIX).partition(".")[0]
            if listener not in listeners:
                warnings.append(f"configuration key {name} is ignored: listeners has no {listener.upper()}")
    return warnings


def _suggestion(name: str) -> str:
    from difflib import get_close_matches  # milliseconds that a start without unknown keys doesn't need

    if name in DYNAMIC_ONLY_KEYS:
        return ": it can only be set while the broker runs, by kafka-configs"
    prefix, base = "", name
    if name.startswith(LISTENER_PREFIX):
        listener, _, base = name.removeprefix(LISTENER_PREFIX).partition(".")
        prefix = f"{LISTENER_PREFIX}{listener}."
        if base in STATIC_KEYS:
            return f": it can't be set for one listener, set {base}"
    close = get_close_matches(base, STATIC_KEYS, n=1, cutoff=_SIMILARITY_MIN)
    return f"; did you mean {prefix}{close[0]}?" if close else ""
