"""The page docs/settings.md, made from the definitions of the keys:

python -m odradek.base.config.settings_page > docs/settings.md
"""

import sys
from collections.abc import Iterator, Mapping, Sequence

from odradek.base.config.definition import ConfigKey, UpdateMode, format_value
from odradek.base.config.deviations import DEVIATIONS
from odradek.base.config.docs import broker_descriptions, topic_descriptions
from odradek.base.config.keys import BROKER_KEYS, DYNAMIC_ONLY_KEYS, STATIC_KEYS, TOPIC_KEYS
from odradek.base.config.support import NO_EFFECTS, REFUSALS, Support

_INTRODUCTION = """\
# Settings

This page lists every key of Apache Kafka 3.9 in ZooKeeper mode, and the few that Kafka doesn't have. A key is obeyed;
or refused by name, if its value requires something that Odradek lacks; or without effect, for the given reason.
The page is generated from the code: `python -m odradek.base.config.settings_page > docs/settings.md`.

| of {total} keys of server.properties | |
|---|---|
| obeyed | {obeyed} |
| refused, unless they have Kafka's default | {refused} |
| without effect | {no_effect} |

A refused value stops the broker at its start with one line that names the key, the value, what is valid and what to do.
AlterConfigs refuses it while the broker runs. A value without effect is accepted and logged once, as is a key
that neither Kafka nor Odradek knows; `odradek up` prints both on the terminal.

`max.connections`, `max.connection.creation.rate` and `num.network.threads` can be set for one listener, as in
`listener.name.external.max.connections`.
"""
_CHANGES = {UpdateMode.READ_ONLY: "restart", UpdateMode.PER_BROKER: "restart", UpdateMode.CLUSTER_WIDE: "at once"}


def render() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    counts = {support: sum(key.support is support for key in STATIC_KEYS.values()) for support in Support}
    yield _INTRODUCTION.format(
        total=len(STATIC_KEYS),
        obeyed=counts[Support.OBEYED],
        refused=counts[Support.REFUSED],
        no_effect=counts[Support.NO_EFFECT],
    )
    yield "## Obeyed\n"
    yield "A change takes a restart, or holds at once when it is set by kafka-configs.\n"
    descriptions = broker_descriptions()
    yield from markdown_table(
        ("key", "default", "a change", ""),
        [
            (f"`{key.name}`", _default(key), _CHANGES[key.update_mode], descriptions[key.name])
            for key in _with(STATIC_KEYS, Support.OBEYED)
        ],
    )
    yield (
        "Only while a broker runs, for moves of replicas: "
        + ", ".join(f"`{name}`" for name in DYNAMIC_ONLY_KEYS)
        + ".\n"
    )
    yield "## Refused\n"
    for reason, refusal in REFUSALS.items():
        yield f"**{_capital(refusal.lacks)}.** {refusal.remedy}\n"
        yield from _listed(STATIC_KEYS, Support.REFUSED, reason, "the only valid value")
    yield "## Without effect\n"
    for reason, why in NO_EFFECTS.items():
        yield f"**{_capital(why)}.**\n"
        yield from _listed(STATIC_KEYS, Support.NO_EFFECT, reason, "default")
    yield "## Topics\n"
    yield from markdown_table(
        ("key", "default", "", ""),
        [
            (f"`{key.name}`", _default(key), _support(key), topic_descriptions()[key.name])
            for key in sorted(TOPIC_KEYS.values(), key=lambda key: key.name)
        ],
    )


def _with(keys: Mapping[str, ConfigKey], support: Support, reason: str = "") -> list[ConfigKey]:
    found = (key for key in keys.values() if key.support is support and key.reason == reason)
    return sorted(found, key=lambda key: key.name)


def _listed(keys: Mapping[str, ConfigKey], support: Support, reason: str, heading: str) -> Iterator[str]:
    found = _with(keys, support, reason)
    if found:
        yield from markdown_table(("key", heading), [(f"`{key.name}`", _default(key)) for key in found])


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield f"|{'---|' * len(headings)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def _default(key: ConfigKey) -> str:
    text = format_value(key.default)
    shown = "none" if text is None else "empty" if text == "" else f"`{text}`"
    if BROKER_KEYS.get(key.name) is not key or key.name not in DEVIATIONS:
        return shown
    deviation = DEVIATIONS[key.name]
    return f"{shown}; Kafka's is `{deviation.kafka_default}`: {deviation.reason}"


def _support(key: ConfigKey) -> str:
    match key.support:
        case Support.OBEYED:
            return "obeyed"
        case Support.REFUSED:
            return f"refused, unless it is the default: {REFUSALS[key.reason].lacks}"
        case Support.NO_EFFECT:
            return f"no effect: {NO_EFFECTS[key.reason]}"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


if __name__ == "__main__":
    sys.stdout.write(render())
