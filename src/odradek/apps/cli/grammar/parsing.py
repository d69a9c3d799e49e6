"""Parser of commands: words become values of a function's parameters.

`--opt value`, `--opt=value`, `-o value`, `-ovalue`, `-xo value` for a flag and an option; options and arguments in any
order; `--` before arguments that begin with a dash. The last of an option that doesn't repeat holds.
"""

import os
from collections import deque
from collections.abc import Iterable, Sequence
from enum import Enum

from odradek.apps.cli.grammar.declaration import Option, Parameter
from odradek.apps.cli.grammar.scanning import Takes, scan
from odradek.apps.cli.usage import WrongUsage
from odradek.base.errors import FatalError, KafkaError


def parse(parameters: Sequence[Parameter], words: Iterable[str]) -> dict[str, object]:
    return Parsing(parameters, words).values()


class _Dialect:
    """Dialect of our own commands: names with their dashes, `-xo value`, and no known option as a value."""

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self._options = {name: p for p in parameters if p.option for name in _spellings(p.option)}

    def split(self, word: str, waiting: deque[str]) -> tuple[str, str | None] | None:
        if not word.startswith("-") or word == "-":
            return None
        name, equals, inline = word.partition("=")
        if name in self._options or name.startswith("--") or name[:2] not in self._options:
            return name, inline if equals else None
        name, rest = word[:2], word[2:]
        if not self._options[name].is_flag:
            return name, rest.removeprefix("=")
        waiting.appendleft(f"-{rest}")
        return name, None

    def recognise(self, name: str) -> Parameter:
        found = self._options.get(name)
        if found is None:
            raise WrongUsage(f"unknown option {name}{like(name, self._options)}")
        return found

    def takes(self, option: Parameter) -> Takes:
        return Takes.NOTHING if option.is_flag else Takes.ONE

    def is_value(self, word: str, option: Parameter) -> bool:
        return word not in self._options

    def refuse_value(self, name: str, option: Parameter) -> WrongUsage:
        return WrongUsage("takes no value", name)

    def miss_value(self, name: str, option: Parameter) -> WrongUsage:
        return WrongUsage(f"needs a value ({option.metavar})", name)


class Parsing:
    """The words of one command line, scanned; values and defaults are looked for when they are asked for."""

    def __init__(self, parameters: Sequence[Parameter], words: Iterable[str]) -> None:
        self._parameters = parameters
        self._given: dict[str, list[object]] = {}
        self._loose: list[str] = []
        self._scan(list(words))

    def values(self) -> dict[str, object]:
        return {parameter.name: self._value(parameter) for parameter in self._parameters}

    def value(self, name: str) -> object:
        return next(self._value(parameter) for parameter in self._parameters if parameter.name == name)

    def _scan(self, words: list[str]) -> None:
        end = words.index("--") if "--" in words else len(words)
        for found in scan(words[:end], _Dialect(self._parameters)):
            if isinstance(found, str):
                self._loose.append(found)
            elif found.option.is_flag:
                self._add(found.option, found.option.option is None or found.name != found.option.option.negative)
            else:
                self._add(found.option, convert(found.option, found.values[0]))
        self._loose += words[end + 1 :]
        self._place_arguments()

    def _place_arguments(self) -> None:
        for parameter in self._parameters:
            if parameter.option is None or (parameter.option.placed and parameter.name not in self._given):
                taken = len(self._loose) if parameter.repeats else 1
                for word in self._loose[:taken]:
                    self._add(parameter, convert(parameter, word))
                del self._loose[:taken]
        if self._loose:
            raise WrongUsage(f"unexpected argument '{self._loose[0]}'")

    def _add(self, parameter: Parameter, value: object) -> None:
        self._given.setdefault(parameter.name, []).append(value)

    def _value(self, parameter: Parameter) -> object:
        given = self._given.get(parameter.name)
        if given is not None:
            return given if parameter.repeats else given[-1]
        if parameter.option and (text := os.environ.get(parameter.option.envvar)):
            return convert(parameter, text)
        if parameter.option and parameter.option.fallback and (text := parameter.option.fallback()):
            return convert(parameter, text)
        if parameter.is_required:
            placed = parameter.option is not None and parameter.option.placed
            raise WrongUsage(f"{parameter.shown} is required{', as an option or as a word' if placed else ''}")
        return parameter.default


def convert(parameter: Parameter, text: str) -> object:
    kind = parameter.kind
    if issubclass(kind, Enum):
        for member in kind:
            if str(member.value).lower() in (text.lower(), f"{text.lower()}s"):
                return member
        raise WrongUsage(f"'{text}' is not one of {', '.join(parameter.choices)}", parameter.shown)
    try:
        value = kind(text)
    except ValueError:
        raise WrongUsage(f"'{text}' is not a {'whole ' * (kind is int)}number", parameter.shown) from None
    if parameter.declared.check:
        try:
            parameter.declared.check(text)
        except (FatalError, KafkaError, ValueError) as error:
            raise WrongUsage(str(error), parameter.shown) from None
    least, most = parameter.declared.min, parameter.declared.max
    if least is not None and value < least:
        raise WrongUsage(f"{text} is less than {least:g}", parameter.shown)
    if most is not None and value > most:
        raise WrongUsage(f"{text} is more than {most:g}", parameter.shown)
    return value


_MEANT = {
    "--json": "--format json",
    "--csv": "--format csv",
    "--output": "--format",
    "--records": "--num-records",
    "--at": "--since",
    "--allow": "--principal",
    "--allow-principal": "--principal",
    "--deny-principal": "--deny --principal",
}
"""Options of other tools, and what may be meant."""
_SIMILARITY_MIN = 0.7


def like(word: str, known: Iterable[str]) -> str:
    """End of an error about an unknown word: the similar known word."""
    names = list(known)
    meant = _MEANT.get(word, "")
    if meant.partition(" ")[0] in names:
        return f"; did you mean {meant}?"
    found = _similar(word, names)
    return f"; did you mean {found}?" if found else ""


def _similar(word: str, names: Sequence[str]) -> str | None:
    """Compare without what names of that kind begin with, so that only what differs counts."""
    from difflib import get_close_matches

    beginning = next((each for each in ("--", "kafka-") if word.startswith(each)), "")
    rest = word.removeprefix(beginning)
    others = {name.removeprefix(beginning): name for name in names if name.startswith(beginning)}
    begun = [name for name in others if rest and name.startswith(rest)]
    close = begun or get_close_matches(rest, others, cutoff=_SIMILARITY_MIN)
    return others[close[0]] if close else None


def _spellings(option: Option) -> list[str]:
    return [*option.names, option.negative] if option.negative else option.names
