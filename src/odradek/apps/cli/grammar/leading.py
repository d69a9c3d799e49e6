"""Options before the word that they belong to: `odradek -b HOST:PORT topics list`, `odradek topics -o json list`."""

from collections.abc import Sequence

LEADING = frozenset(
    {
        *("-b", "--bootstrap-server", "--command-config", "--profile", "--data"),
        *("-o", "--format", "-t", "--topic", "-g", "--group"),
    }
)
"""Options that may come first. Each of them takes a value, and means the same in every command that has it."""


def leading_options(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the words: the options at the beginning with their values, and the rest."""
    at = 0
    while at < len(words) and words[at].partition("=")[0] in LEADING:
        at += 1 if "=" in words[at] else 2
    return list(words[:at]), list(words[at:])
