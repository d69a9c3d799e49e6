"""From words to values, by the parameters of a function."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pytest

from odradek.apps.cli.grammar.declaration import Argument, Option, call, parameters_of
from odradek.apps.cli.grammar.help_page import command_page
from odradek.apps.cli.grammar.parsing import parse
from odradek.apps.cli.usage import WrongUsage


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


def paint(
    what: Annotated[str, Argument(help="A thing.")],
    where: Annotated[list[Path] | None, Argument()] = None,
    colour: Annotated[Colour, Option("--colour, -c", help="Which.")] = Colour.RED,
    layers: Annotated[int, Option("--layers, -n", min=1, max=9)] = 1,
    tags: Annotated[list[str] | None, Option("--tag", metavar="TAG")] = None,
    wet: Annotated[bool, Option("--wet, -w")] = False,
    varnish: Annotated[bool | None, Option("--varnish/--no-varnish", show_default="if it rains")] = None,
    server: Annotated[str, Option("--server", envvar="PAINT_SERVER")] = "here",
) -> None: ...


PARAMETERS = parameters_of(paint)
DEFAULTS = {
    "what": "wall", "where": None, "colour": Colour.RED, "layers": 1, "tags": None, "wet": False, "varnish": None,
    "server": "here",
}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("wall", {}),
        ("wall a b", {"where": [Path("a"), Path("b")]}),
        ("--colour blue wall --layers=3", {"colour": Colour.BLUE, "layers": 3}),
        ("wall --colour BLUE", {"colour": Colour.BLUE}),
        ("wall -c blue -n3 -w", {"colour": Colour.BLUE, "layers": 3, "wet": True}),
        ("wall -wn 4", {"layers": 4, "wet": True}),
        ("wall --tag a --tag -1 --tag=", {"tags": ["a", "-1", ""]}),
        ("wall --layers 2 --layers 3", {"layers": 3}),
        ("wall --varnish", {"varnish": True}),
        ("wall --varnish --no-varnish", {"varnish": False}),
        ("-- wall --wet", {"where": [Path("--wet")]}),
        ("wall -", {"where": [Path("-")]}),
    ],
)
def test_words_become_values(words: str, changed: dict[str, object]) -> None:
    assert parse(PARAMETERS, words.split()) == DEFAULTS | changed


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("", "WHAT is required"),
        ("wall --lay 2", "unknown option --lay; did you mean --layers?"),
        ("wall --layer 2", "unknown option --layer; did you mean --layers?"),
        ("wall -x", "unknown option -x"),
        ("wall -wx", "unknown option -x"),
        ("wall --layers two", "--layers: 'two' is not a whole number"),
        ("wall --layers 0", "--layers: 0 is less than 1"),
        ("wall -n 10", "--layers: 10 is more than 9"),
        ("wall --layers", "--layers: needs a value (N)"),
        ("wall --layers --wet", "--layers: needs a value (N)"),
        ("wall --wet=yes", "--wet: takes no value"),
        ("wall --colour pink", "--colour: 'pink' is not one of red, blue"),
    ],
)
def test_what_is_wrong_is_named(words: str, complaint: str) -> None:
    with pytest.raises(WrongUsage) as caught:
        parse(PARAMETERS, words.split())
    assert str(caught.value) == complaint


def test_a_word_too_many() -> None:
    with pytest.raises(WrongUsage, match="unexpected argument 'b'"):
        parse([parameter for parameter in PARAMETERS if parameter.name == "what"], ["a", "b"])


def test_a_variable_stands_in_for_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAINT_SERVER", "there")
    assert parse(PARAMETERS, ["wall"])["server"] == "there"
    assert parse(PARAMETERS, ["wall", "--server", "elsewhere"])["server"] == "elsewhere"


def test_the_page_tells_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    page = command_page("paint", "Paints.", PARAMETERS, ["paint wall"])
    assert (
        page
        == """\
usage: paint [OPTIONS] WHAT [WHERE…]

Paints.

Arguments:
  WHAT   A thing. [required]
  WHERE

Options:
  -c, --colour red|blue    Which. [default: red]
  -n, --layers N           [default: 1]
  --tag TAG
  -w, --wet
  --varnish, --no-varnish  [default: if it rains]
  --server TEXT            [default: here] [env: PAINT_SERVER]
  -h, --help               Show this help.

Examples:
  paint wall"""
    )


@dataclass(frozen=True, slots=True)
class Size:
    width: Annotated[int, Option("--width")] = 1
    height: Annotated[int, Option("--height")] = 2


def test_options_that_several_commands_share_come_as_one_value() -> None:
    given: list[object] = []

    def frame(size: Size, name: Annotated[str, Argument()]) -> None:
        given.extend((size, name))

    call(frame, parse(parameters_of(frame), ["--width", "7", "door"]))
    assert given == [Size(7, 2), "door"]


def test_an_option_may_be_given_by_its_place() -> None:
    def ship(
        topic: Annotated[str, Option("--topic, -t", placed=True)], files: Annotated[list[str] | None, Argument()] = None
    ) -> None: ...

    parameters = parameters_of(ship)
    assert parse(parameters, ["orders", "a"]) == {"topic": "orders", "files": ["a"]}
    assert parse(parameters, ["a", "-t", "orders"]) == {"topic": "orders", "files": ["a"]}
    with pytest.raises(WrongUsage, match="--topic is required"):
        parse(parameters, [])
    assert "usage: ship [OPTIONS] TOPIC [FILES…]" in command_page("ship", "Ship.", parameters, [])
