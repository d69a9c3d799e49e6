"""Options as Kafka's tools take them (joptsimple): `--opt value`, `--opt=value`, `-opt value`, `--op` for `--opt`
where nothing else begins so, the same option again, lists with commas.

Parsing, `--help` and shell completion of a tool come from one table of its options.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from odradek.apps.cli.grammar.scanning import Takes, scan


class WrongOptions(Exception):
    """A command line that the tool doesn't take. The message is Kafka's."""


@dataclass(frozen=True, slots=True)
class Option:
    name: str
    help: str
    value: str | None = None  # what it takes, for --help; None: it takes nothing
    default: str | None = None
    separator: str | None = None  # several values in one, as 'a,b'
    value_is_optional: bool = False
    takes_rest: bool = False  # every following word that is no option, as argparse's nargs='+'


class Given:
    """Typed options: each one with its values, in the order of the command line."""

    def __init__(
        self, table: "OptionTable", values: dict[str, list[str]], order: list[str], command: str | None = None
    ) -> None:
        self._table = table
        self._values = values
        self._command = command
        self.order = order

    @property
    def command(self) -> str:
        """The command of a tool that has several."""
        if self._command is None:
            raise WrongOptions(f"A command is missing: {', '.join(self._table.commands)}")
        return self._command

    def has(self, name: str) -> bool:
        return name in self._values

    def any_of(self, *names: str) -> list[str]:
        return [name for name in names if self.has(name)]

    def values(self, name: str) -> list[str]:
        option = self._table.option(name)
        given = self._values.get(name)
        if given is None:
            given = [] if option.default is None else [option.default]
        if option.separator is not None:
            given = [part for value in given for part in value.split(option.separator)]
        return given

    def value(self, name: str) -> str | None:
        values = self.values(name)
        if len(values) > 1:
            raise WrongOptions(f"Found multiple arguments for option {name}, but you asked for only one")
        return values[0] if values else None

    def text(self, name: str) -> str:
        """The value of an option that has been checked to be there, or has a default."""
        value = self.value(name)
        if value is None:
            raise WrongOptions(f'Missing required argument "[{name}]"')
        return value

    def number(self, name: str) -> int | None:
        value = self.value(name)
        if value is None:
            return None
        try:
            return int(value)
        except ValueError:
            raise WrongOptions(f"Cannot parse argument '{value}' of option {name}") from None

    def require(self, *names: str) -> None:
        for name in names:
            if not self.has(name):
                raise WrongOptions(f'Missing required argument "[{name}]"')

    def forbid_with(self, name: str, *others: str) -> None:
        if self.has(name):
            for other in self.any_of(*others):
                raise WrongOptions(f'Option "[{name}]" can\'t be used with option "[{other}]"')

    def one_action(self, *names: str) -> str:
        found = self.any_of(*names)
        if len(found) != 1:
            raise WrongOptions("Command must include exactly one action: " + ", ".join(f"--{name}" for name in names))
        return found[0]


class OptionTable:
    def __init__(self, purpose: str, *options: Option, commands: Mapping[str, str] = MappingProxyType({})) -> None:
        """`commands`: command words, each with its help. A command line contains exactly one of them."""
        self.purpose = purpose
        self.commands = commands
        self.options = {option.name: option for option in options}

    def option(self, name: str) -> Option:
        return self.options[name]

    def parse(self, arguments: Sequence[str]) -> Given:
        values: dict[str, list[str]] = {}
        order: list[str] = []
        command: str | None = None
        for found in scan(arguments, self):
            if isinstance(found, str):
                if found in self.commands and command is None:
                    command = found
                    continue
                raise WrongOptions(f"unexpected argument '{found}'")
            order.append(found.option.name)
            values.setdefault(found.option.name, []).extend(found.values)
        return Given(self, values, order, command)

    # ---- the dialect: one dash or two, unique prefixes of names

    def split(self, word: str, waiting: deque[str]) -> tuple[str, str | None] | None:
        name, equals, inline = word.lstrip("-").partition("=")
        return (name, inline if equals else None) if word.startswith("-") and name else None

    def recognise(self, name: str) -> Option:
        if name in self.options:
            return self.options[name]
        beginnings = [option for option in self.options.values() if option.name.startswith(name)]
        if len(beginnings) == 1:
            return beginnings[0]
        if beginnings:
            raise WrongOptions(f"{name} is ambiguous: {', '.join(option.name for option in beginnings)}")
        raise WrongOptions(f"{name} is not a recognized option")

    def takes(self, option: Option) -> Takes:
        if option.value is None:
            return Takes.NOTHING
        if option.takes_rest:
            return Takes.REST
        return Takes.OPTIONAL if option.value_is_optional else Takes.ONE

    def is_value(self, word: str, option: Option) -> bool:
        return self.takes(option) is Takes.ONE or not word.startswith("--")

    def refuse_value(self, name: str, option: Option) -> WrongOptions:
        return WrongOptions(f"Option {option.name} takes no argument")

    def miss_value(self, name: str, option: Option) -> WrongOptions:
        return WrongOptions(f"Option {option.name} requires an argument")

    def usage(self, tool: str) -> str:
        width = max(len(_shown(option)) for option in self.options.values()) + 2
        command = "COMMAND " if self.commands else ""
        lines = [self.purpose, "", f"usage: odradek {tool} {command}OPTIONS", ""]
        lines += [f"  {name:<{width}}{text}" for name, text in self.commands.items()]
        for option in self.options.values():
            default = "" if option.default is None else f" (default: {option.default})"
            lines.append(f"  {_shown(option):<{width}}{option.help}{default}")
        return "\n".join(lines)


def _shown(option: Option) -> str:
    if option.value is None:
        return f"--{option.name}"
    return f"--{option.name} [<{option.value}>]" if option.value_is_optional else f"--{option.name} <{option.value}>"


BOOTSTRAP = Option("bootstrap-server", "the brokers to ask first", "HOST:PORT,…")
COMMAND_CONFIG = Option("command-config", "a file with properties of the client", "FILE")
HELP = Option("help", "show this")
VERSION = Option("version", "show the version")
EVERY_TOOL = (HELP, VERSION)
