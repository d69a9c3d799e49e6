"""Settings of a topic or a broker as a table: value with its unit, source, default, documentation."""

from collections.abc import Mapping, Sequence

from odradek.apps.console.markup import Html, tag, together
from odradek.apps.console.views.parts import Column, button, chip, table
from odradek.apps.figures import duration_text, size_text
from odradek.base.config.definition import ConfigSource
from odradek.client.config_admin import Setting

_SOURCES = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG: "topic",
    ConfigSource.DYNAMIC_BROKER_CONFIG: "broker",
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG: "all brokers",
    ConfigSource.STATIC_BROKER_CONFIG: "server.properties",
    ConfigSource.DEFAULT_CONFIG: "default",
}
_SECRET = "••••••"
_UNLIMITED = ("-1", "9223372036854775807")
_COUNTED_MS = {".hours": 3_600_000, ".minutes": 60_000, ".seconds": 1_000}


def with_unit(name: str, value: str | None) -> str:
    """Return the value with a unit, as `7 d` for retention.ms=604800000; empty if the value is clear without it."""
    if value is None or not value.removeprefix("-").isdecimal():
        return ""
    is_time, is_size = name.endswith(".ms"), name.endswith(".bytes")
    if value in _UNLIMITED and (is_time or is_size):
        return "no limit"
    if value.startswith("-"):
        return ""
    if is_time:
        return duration_text(int(value))
    if is_size:
        return size_text(int(value))
    unit_ms = next((unit_ms for ending, unit_ms in _COUNTED_MS.items() if name.endswith(ending)), 0)
    return duration_text(int(value) * unit_ms) if unit_ms else ""


def default_of(setting: Setting, own: ConfigSource) -> str | None:
    """Return the value without the override of the topic or the broker."""
    if setting.source is not own:
        return setting.value
    return next((synonym.value for synonym in setting.synonyms if synonym.source is not own), None)


def shown_default(setting: Setting, own: ConfigSource) -> str | None:
    """Return the value of a topic's setting without its override; of a broker's the one that is built in."""
    if own is not ConfigSource.DYNAMIC_BROKER_CONFIG:
        return default_of(setting, own)
    if setting.source is ConfigSource.DEFAULT_CONFIG:
        return setting.value
    return next((each.value for each in setting.synonyms if each.source is ConfigSource.DEFAULT_CONFIG), None)


def matching(settings: Sequence[Setting], own: ConfigSource, text: str, *, only_own: bool) -> list[Setting]:
    """A search covers all settings; without one, `only_own` omits settings that are not overridden."""
    words = text.lower().split()
    return [
        setting
        for setting in settings
        if (words or not only_own or _is_set(setting, own)) and all(word in setting.name.lower() for word in words)
    ]


def _is_set(setting: Setting, own: ConfigSource) -> bool:
    return setting.source is own or (
        own is ConfigSource.DYNAMIC_BROKER_CONFIG and setting.source is not ConfigSource.DEFAULT_CONFIG
    )


def settings_html(
    settings: Sequence[Setting], own: ConfigSource, documentation: Mapping[str, str], *, read_only: bool, empty: str
) -> Html:
    columns = [
        Column("Setting"),
        Column("Value"),
        Column("From", small=False),
        Column("Default", small=False),
        Column("", numeric=True),
    ]
    return table(columns, [_cells(each, own, documentation, read_only) for each in settings], empty=empty)


def _cells(setting: Setting, own: ConfigSource, documentation: Mapping[str, str], read_only: bool) -> list[object]:
    is_own = setting.source is own
    text = documentation.get(setting.name)
    name: object = tag("span", setting.name, cls="mono key")
    if text:
        name = tag("details", tag("summary", name), tag("div", text, cls="note"))
    can_change = not read_only and not setting.is_read_only
    return [
        name,
        _value(setting, setting.value, "b" if is_own else "span"),
        chip(_SOURCES.get(setting.source, "?"), "accent" if is_own else ""),
        tag("span", _value(setting, shown_default(setting, own), "span"), cls="soft"),
        button("Change", "config", cls="btn small", name=setting.name) if can_change else None,
    ]


def _value(setting: Setting, value: str | None, element: str) -> Html:
    if setting.is_sensitive:
        return tag(element, _SECRET, cls="mono")
    unit = with_unit(setting.name, value)
    return together(tag(element, value, cls="mono wrap"), tag("small", f" {unit}", cls="faint") if unit else None)
