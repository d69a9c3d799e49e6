"""Every command of the command line with its grammar, for the reference page and the manual pages."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

from odradek.apps.cli.grammar.declaration import Parameter
from odradek.apps.cli.grammar.noun import Command, Noun
from odradek.apps.cli.main import COMMANDS


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """`words`: the command, or the noun and the verb. `command` is None for a command with its own grammar."""

    words: tuple[str, ...]
    help: str
    command: Command | None = None

    @property
    def parameters(self) -> list[Parameter]:
        shown = self.command.parameters if self.command else []
        return [parameter for parameter in shown if not parameter.declared.hidden]


@dataclass(frozen=True, slots=True)
class CommandPage:
    """A word behind `odradek` with its verbs; without verbs, the one entry is the command itself."""

    name: str
    help: str
    purpose: str
    examples: tuple[str, ...]
    entries: tuple[CommandEntry, ...]


def command_pages() -> Iterator[CommandPage]:
    for name, entry in COMMANDS.items():
        target = getattr(import_module(entry.module), entry.attribute)
        match target:
            case Noun():
                verbs = [
                    CommandEntry((name, verb), command.purpose.splitlines()[0], command)
                    for verb, command in target.verbs.items()
                ]
                yield CommandPage(name, entry.help, target.purpose, tuple(target.examples), tuple(verbs))
            case Command():
                only = CommandEntry((name,), entry.help, target)
                yield CommandPage(name, entry.help, target.purpose, tuple(target.examples), (only,))
            case _:
                yield CommandPage(name, entry.help, "", (), (CommandEntry((name,), entry.help),))
