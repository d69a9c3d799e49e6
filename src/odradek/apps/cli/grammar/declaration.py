"""Options and arguments: annotations of a function's parameters, combined with their types."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, is_dataclass
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, cast, get_args, get_origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An argument: its position gives it its meaning."""

    help: str = ""
    metavar: str = ""
    show_default: bool | str = True  # a text tells what an absent value means
    min: float | None = None
    max: float | None = None
    check: Callable[[str], object] | None = None  # raises FatalError or KafkaError at what can't be meant
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class SideOption:
    """An option that is added to every command that has a certain other option. `apply` is given its value before
    the command runs; the command's function doesn't know of it."""

    name: str
    option: "Option"
    kind: type[Any]
    apply: Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Option(Argument):
    """An option with a value behind its name (`-b, --bootstrap-server`), or a flag (`--all`, `--once/--no-once`)."""

    spelled: str
    envvar: str = field(default="", kw_only=True)
    fallback: Callable[[], str | None] | None = field(default=None, kw_only=True)
    """The value where none is given, before the default; None: the default."""
    placed: bool = field(default=False, kw_only=True)
    """Allow the value as a word by its place: `consume orders` for `consume --topic orders`."""
    brings: tuple[SideOption, ...] = field(default=(), kw_only=True)

    @property
    def names(self) -> list[str]:
        return self.spelled.partition("/")[0].split(", ")

    @property
    def negative(self) -> str:
        """Name of the option that switches a flag off; empty if there is none."""
        return self.spelled.partition("/")[2]


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    declared: Argument
    kind: type[Any]  # str, int, float, bool, Path or an enumeration
    repeats: bool
    default: object

    @property
    def option(self) -> Option | None:
        return self.declared if isinstance(self.declared, Option) else None

    @property
    def is_flag(self) -> bool:
        return self.kind is bool

    @property
    def is_required(self) -> bool:
        return self.default is inspect.Parameter.empty

    @property
    def choices(self) -> list[str]:
        return [str(member.value) for member in self.kind] if issubclass(self.kind, Enum) else []

    @property
    def shown(self) -> str:
        """Name of the parameter in error messages."""
        return self.option.names[0] if self.option else self.metavar

    @property
    def metavar(self) -> str:
        if self.declared.metavar or self.is_flag:
            return self.declared.metavar
        if self.option is None:
            return self.name.upper()
        return "|".join(self.choices) or {int: "N", float: "N", Path: "PATH"}.get(self.kind, "TEXT")


def parameters_of(function: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters of a command, with the fields of bundles: dataclasses of options that several commands
    share.
    """
    found: list[Parameter] = []
    for declared in inspect.signature(function).parameters.values():
        if is_dataclass(declared.annotation):
            found += parameters_of(cast(type, declared.annotation))
        else:
            found.append(_parameter(declared))
    return found


def side_options_of(parameters: Sequence[Parameter]) -> list[SideOption]:
    """Return the side options of a command, without those that it declares itself."""
    own = {parameter.name for parameter in parameters}
    return [side for p in parameters if p.option is not None for side in p.option.brings if side.name not in own]


def call(function: Callable[..., None], values: dict[str, object]) -> None:
    """Call the function with a value for each of its parameters."""
    function(**_bundled(function, values))


def _bundled(function: Callable[..., Any], values: dict[str, object]) -> dict[str, object]:
    return {
        name: cast(type, kind)(**_bundled(cast(type, kind), values)) if is_dataclass(kind) else values[name]
        for name, kind in ((item.name, item.annotation) for item in inspect.signature(function).parameters.values())
    }


def _parameter(declared: inspect.Parameter) -> Parameter:
    kind, annotation = get_args(declared.annotation)
    kind = _without_none(kind)
    repeats = get_origin(kind) is list
    return Parameter(declared.name, annotation, get_args(kind)[0] if repeats else kind, repeats, declared.default)


def _without_none(kind: Any) -> Any:
    return next(part for part in get_args(kind) if part is not type(None)) if isinstance(kind, UnionType) else kind
