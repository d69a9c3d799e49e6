"""Commands in README and docs are commands that there are, with options that they take."""

from importlib import import_module
from pathlib import Path

import pytest

from document_commands import ROOT, blocks_of, pages, words_of_ours
from odradek.apps.cli.grammar.noun import Command, Noun
from odradek.apps.cli.grammar.parsing import parse
from odradek.apps.cli.kafka.tool import TOOLS
from odradek.apps.cli.main import ALIASES, COMMANDS


def check(words: list[str]) -> None:
    """Raises WrongUsage for words that the grammar doesn't have."""
    name, rest = ALIASES.get(words[0], words[0]), words[1:]
    if name.startswith("kafka-"):
        assert name in TOOLS
    elif not name.startswith("-"):
        target: Command | Noun = getattr(import_module(COMMANDS[name].module), COMMANDS[name].attribute)
        if isinstance(target, Noun):
            target, rest = target.verbs[rest[0]], rest[1:]
        if "--help" not in rest:
            parse(target.parameters, rest)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page(page: Path) -> None:
    for block in blocks_of(page):
        for words in words_of_ours(block):
            try:
                check(words)
            except Exception as error:
                pytest.fail(f"{page.name}:{block.line}: odradek {' '.join(words)}: {error!r}")
