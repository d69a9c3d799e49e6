"""Commands in README and docs are commands that there are, with options that they take."""

from importlib import import_module
from pathlib import Path

import pytest

from document_commands import ROOT, blocks_of, inline_commands, pages, words_of_ours
from odradek.apps.cli.grammar.leading import leading_options
from odradek.apps.cli.grammar.noun import Command, Noun
from odradek.apps.cli.grammar.parsing import parse
from odradek.apps.cli.kafka.tool import TOOLS
from odradek.apps.cli.main import ALIASES, COMMANDS
from odradek.apps.lab.command import command_of


def commands_of(words: list[str]) -> tuple[dict[str, Command], list[str]]:
    """Return the commands that the words may mean, by verb, and the words after the noun and the verb.

    KeyError: there is no such noun or verb.
    """
    first, (name, *rest) = leading_options(words)
    second, rest = leading_options(rest)
    name, leading = ALIASES.get(name, name), [*first, *second]
    target = getattr(import_module(COMMANDS[name].module), COMMANDS[name].attribute)
    if isinstance(target, Command):
        return {"": target}, [*leading, *rest]
    has_verb = bool(rest) and not rest[0].startswith("-")
    if isinstance(target, Noun):
        verbs = {rest[0]: target.verbs[rest[0]]} if has_verb else dict(target.verbs)
        return verbs, [*leading, *rest[has_verb:]]
    experiment = command_of(rest[0])  # of the laboratory
    assert isinstance(experiment, Command)
    return {rest[0]: experiment}, rest[1:]


def check(words: list[str]) -> None:
    """Raises WrongUsage for words that the grammar doesn't have."""
    if words[0].startswith("kafka-"):
        assert words[0] in TOOLS
    elif not words[0].startswith("-"):
        ((_, command),), rest = (found := commands_of(words))[0].items(), found[1]
        if "--help" not in rest:
            parse(command.parameters, rest)


NO_COMMANDS = (["topics", "crate"], ["COMMAND", "--help"], ["--version"], ["--help"], ["COMMAND"])
EVERY_PAGE = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def unknown_word(words: list[str]) -> str | None:
    """Return the first noun, verb or option that the grammar doesn't have."""
    if words[0].startswith("kafka-"):
        return None if words[0] in TOOLS else words[0]
    try:
        commands, rest = commands_of(words)
    except KeyError as error:
        return str(error)
    options = [p.option for each in commands.values() for p in each.parameters if p.option]
    known = {spelled for option in options for spelled in (*option.names, option.negative)}
    known |= {f"--{verb}" for verb in commands}
    return next((word for word in rest if word.startswith("--") and word not in known), None)


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_inside_of_sentences_are_commands(page: Path) -> None:
    found = {" ".join(words): unknown_word(words) for words in inline_commands(page) if words not in NO_COMMANDS}
    assert {command: word for command, word in found.items() if word is not None} == {}


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page(page: Path) -> None:
    for block in blocks_of(page):
        for words in words_of_ours(block):
            try:
                check(words)
            except Exception as error:
                pytest.fail(f"{page.name}:{block.line}: odradek {' '.join(words)}: {error!r}")
