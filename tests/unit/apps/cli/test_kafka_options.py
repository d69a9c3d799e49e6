"""Command lines in the way of Kafka's tools."""

import pytest

from odradek.apps.cli.kafka.options import Given, Option, OptionTable, WrongOptions
from odradek.apps.cli.kafka.tool import TOOLS, table_of

TABLE = OptionTable(
    "a tool",
    Option("topic", "", "TOPIC"),
    Option("topics-file", "", "FILE"),
    Option("describe", ""),
    Option("keys", "", "K,…", separator=","),
    Option("state", "", "STATE", value_is_optional=True),
    Option("time", "", "MS", default="5"),
    Option("props", "", "KEY=VALUE", takes_rest=True),
)


def parsed(line: str) -> Given:
    return TABLE.parse(line.split())


@pytest.mark.parametrize("line", ["--topic t", "--topic=t", "-topic t"])
def test_a_value_comes_in_three_ways(line: str) -> None:
    assert parsed(line).value("topic") == "t"


def test_beginnings_lists_defaults_and_the_rest() -> None:
    given = parsed("--desc --keys a,b --keys c --state --props x=1 y=2 --topic -1")
    assert given.has("describe")
    assert given.values("keys") == ["a", "b", "c"]
    assert (given.has("state"), given.value("state")) == (True, None)
    assert given.number("time") == 5
    assert given.values("props") == ["x=1", "y=2"]
    assert given.value("topic") == "-1"
    assert given.order == ["describe", "keys", "keys", "state", "props", "topic"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--nosuch", "nosuch is not a recognized option"),
        ("--to t", "to is ambiguous: topic, topics-file"),
        ("--topic", "Option topic requires an argument"),
        ("--describe=yes", "Option describe takes no argument"),
        ("word", "unexpected argument 'word'"),
    ],
)
def test_what_is_not_taken(line: str, told: str) -> None:
    with pytest.raises(WrongOptions, match=told):
        parsed(line)


def test_one_value_where_two_were_given() -> None:
    with pytest.raises(WrongOptions, match="Found multiple arguments for option topic"):
        parsed("--topic a --topic b").value("topic")


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_tells_of_its_options(tool: str) -> None:
    assert "--help" in table_of(tool).usage(tool)
