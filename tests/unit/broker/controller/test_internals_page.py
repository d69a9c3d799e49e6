"""The tables in docs/internals/controller.md are those of the machines."""

import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

import pytest

from odradek.broker.controller.core import partition_state_machine as partition_machine
from odradek.broker.controller.core import replica_state_machine as replica_machine

PAGE = Path(__file__).parents[4] / "docs" / "internals" / "controller.md"


def table_of(machine: str) -> dict[str, set[str]]:
    _, _, after = PAGE.read_text(encoding="utf-8").partition(f"| {machine} to | from |")
    rows = re.findall(r"^\| ([A-Z_]+) \| ([A-Z_, ]+) \|", after.partition("\n\n")[0], re.MULTILINE)
    return {target: set(sources.split(", ")) for target, sources in rows}


@pytest.mark.parametrize(
    ("machine", "legal_from"),
    [("partition", partition_machine.LEGAL_FROM), ("replica", replica_machine.LEGAL_FROM)],
)
def test_the_page_shows_the_moves_that_are_legal(machine: str, legal_from: Mapping[Enum, frozenset[Enum]]) -> None:
    expected = {target.name: {source.name for source in sources} for target, sources in legal_from.items()}
    assert table_of(machine) == expected
