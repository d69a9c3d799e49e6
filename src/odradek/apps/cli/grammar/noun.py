"""Commands behind `odradek` on a command line: a command, or a noun with verbs.

Both are called with the words that follow and with the words before them, and answer with an exit code.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import TypeVar

from odradek.apps.cli.grammar.declaration import Parameter, call, parameters_of, side_options_of
from odradek.apps.cli.grammar.leading import leading_options
from odradek.apps.cli.grammar.parsing import Parsing, like
from odradek.apps.cli.usage import WrongUsage

Function = TypeVar("Function", bound=Callable[..., None])
_HELP = ("--help", "-h")
_MEANT = {
    "ls": ("list",),
    "list": ("describe",),
    "show": ("describe", "list"),
    "get": ("describe", "list"),
    "create": ("add", "set"),
    "edit": ("alter", "set"),
    "change": ("alter", "set"),
    "purge": ("delete-records",),
    "trim": ("delete-records",),
    "add": ("create", "set", "alter"),
    "new": ("create",),
    "update": ("alter", "set"),
    "set": ("alter",),
    "rm": ("delete",),
    "remove": ("delete",),
}
"""Verbs of other tools, with our verbs of the same meaning."""


class Command:
    """A function as a command. Its docstring is the description."""

    def __init__(self, function: Callable[..., None], examples: Sequence[str] = ()) -> None:
        self._function = function
        self.examples = examples
        self.purpose = inspect.getdoc(function) or ""

    @property
    def parameters(self) -> list[Parameter]:
        own = parameters_of(self._function)
        return own + [Parameter(side.name, side.option, side.kind, False, None) for side in side_options_of(own)]

    def __call__(self, words: Sequence[str], name: str) -> int:
        if _asks_for_help(words):
            from odradek.apps.cli.grammar.help_page import command_page

            print(command_page(name, self.purpose, self.parameters, self.examples))
            return 0
        try:
            call(self._function, self._values(words))
        except WrongUsage as error:
            raise error.see(name) from None
        return 0

    def _values(self, words: Sequence[str]) -> dict[str, object]:
        """Values of the function's parameters; side options are applied before defaults are looked for."""
        own = parameters_of(self._function)
        parsing = Parsing(self.parameters, words)
        for side in side_options_of(own):
            if (value := parsing.value(side.name)) is not None:
                side.apply(value)
        return parsing.values()


def command(*, examples: Sequence[str] = ()) -> Callable[[Callable[..., None]], Command]:
    return lambda function: Command(function, examples)


class Noun:
    """Several commands, each with a verb: `topics create …`, or as Kafka's tools have it, `topics --create …`."""

    def __init__(self, purpose: str, *, examples: Sequence[str] = ()) -> None:
        self.purpose = purpose
        self.examples = examples
        self.verbs: dict[str, Command] = {}

    def verb(self, name: str = "", *, examples: Sequence[str] = ()) -> Callable[[Function], Function]:
        def declare(function: Function) -> Function:
            self.verbs[name or function.__name__] = Command(function, examples)
            return function

        return declare

    def __call__(self, words: Sequence[str], name: str) -> int:
        verb, *rest = self._verb_first(words, name) or ["--help"]
        if verb in _HELP or (verb == "help" and not rest):
            from odradek.apps.cli.grammar.help_page import noun_page

            purposes = {verb: command.purpose.splitlines()[0] for verb, command in self.verbs.items()}
            print(noun_page(name, self.purpose, purposes, self.examples))
            return 0
        if verb not in self.verbs:
            meant = [other for other in _MEANT.get(verb, ()) if other in self.verbs][:1]
            hint = like(meant[0] if meant else verb, self.verbs) or f"; there are {', '.join(self.verbs)}"
            raise WrongUsage(f"unknown command '{name} {verb}'{hint}").see(name)
        return self.verbs[verb](rest, f"{name} {verb}")

    def _verb_first(self, words: Sequence[str], name: str) -> list[str]:
        moved, rest = leading_options(words)
        if not words or (rest and not rest[0].startswith("-")):
            return [*rest[:1], *moved, *rest[1:]]
        verbs = {f"--{name}": name for name in self.verbs}
        given = [word for word in words if word in verbs]
        if len(given) > 1:
            raise WrongUsage(f"only one of {', '.join(verbs)} can be given, not {' and '.join(given)}").see(name)
        if given:
            return [verbs[given[0]], *(word for word in words if word != given[0])]
        if _asks_for_help(words):
            return ["--help"]
        raise WrongUsage(f"a verb is required: one of {', '.join(self.verbs)}{like(words[0], verbs)}").see(name)


def _asks_for_help(words: Sequence[str]) -> bool:
    ours = words[: words.index("--")] if "--" in words else words
    return any(word in ours for word in _HELP)
