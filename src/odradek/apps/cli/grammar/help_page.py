"""`--help`: description, options and examples of a command, wrapped to the terminal's width."""

import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from shutil import get_terminal_size
from textwrap import wrap

from odradek.apps.cli.colour import styled
from odradek.apps.cli.grammar.declaration import Parameter

_WIDTH_MAX = 120
_LEFT_MAX = 34


def command_page(name: str, purpose: str, parameters: Sequence[Parameter], examples: Sequence[str]) -> str:
    shown = [parameter for parameter in parameters if not parameter.declared.hidden]
    arguments = [parameter for parameter in shown if parameter.option is None]
    options = [(spelling(parameter), option_text(parameter)) for parameter in shown if parameter.option]
    return _page(
        [f"usage: {usage_line(name, shown)}", *_folded(purpose)],
        ("Arguments", _columns([(parameter.metavar, option_text(parameter)) for parameter in arguments])),
        ("Options", _columns([*options, ("-h, --help", "Show this help.")])),
        ("Examples", [f"  {line}" for line in examples]),
    )


def noun_page(name: str, purpose: str, verbs: Mapping[str, str], examples: Sequence[str]) -> str:
    return _page(
        [f"usage: {name} VERB [OPTIONS]", *_folded(purpose)],
        ("Verbs", _columns(list(verbs.items()))),
        ("Examples", [f"  {line}" for line in examples]),
        ("", [f"See `{name} VERB --help` for the options of each verb."]),
    )


def _page(beginning: list[str], *sections: tuple[str, list[str]]) -> str:
    usage, *purpose = beginning
    lines = [usage, "", *purpose]
    for title, content in sections:
        if content:
            lines += ["", *([styled(f"{title}:", "bold", sys.stdout)] if title else []), *content]
    return "\n".join(lines)


def usage_line(name: str, parameters: Sequence[Parameter]) -> str:
    placed = [parameter for parameter in parameters if parameter.option is None or parameter.option.placed]
    return " ".join([name, "[OPTIONS]", *map(_placed, placed)])


def spelling(parameter: Parameter) -> str:
    """All names of an option and its value, or the place of an argument."""
    option = parameter.option
    if option is None:
        return parameter.metavar
    names = [*sorted(option.names, key=len), *([option.negative] if option.negative else [])]
    return f"{', '.join(names)} {parameter.metavar}".rstrip()


def _placed(parameter: Parameter) -> str:
    word = (parameter.name.upper() if parameter.option else parameter.metavar) + "…" * parameter.repeats
    return word if parameter.is_required else f"[{word}]"


def option_text(parameter: Parameter) -> str:
    """Meaning, default and variable of an option."""
    declared, option = parameter.declared, parameter.option
    parts = [declared.help]
    if parameter.is_required:
        parts.append("[required]")
    elif default := _default(parameter):
        parts.append(f"[default: {default}]")
    if option and option.envvar:
        parts.append(f"[env: {option.envvar}]")
    return " ".join(filter(None, parts))


def _default(parameter: Parameter) -> str:
    if isinstance(parameter.declared.show_default, str):
        return parameter.declared.show_default
    default = parameter.default
    if not parameter.declared.show_default or default is None or parameter.is_flag:
        return ""
    return str(default.value if isinstance(default, Enum) else default)


def _columns(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Format names on the left, meanings on the right; a long name has a line of its own."""
    left = min(max((len(name) for name, _ in rows), default=0), _LEFT_MAX) + 2
    lines: list[str] = []
    for name, meaning in rows:
        wrapped = wrap(meaning, max(_width() - left - 2, 20)) or [""]
        if len(name) >= left:
            lines.append(f"  {name}")
        else:
            lines.append(f"  {name:<{left}}{wrapped.pop(0)}".rstrip())
        lines += [" " * (left + 2) + line for line in wrapped]
    return lines


def _folded(text: str) -> list[str]:
    return [line for paragraph in text.split("\n\n") for line in (*wrap(paragraph, _width()), "")][:-1]


def _width() -> int:
    return min(get_terminal_size().columns, _WIDTH_MAX)
