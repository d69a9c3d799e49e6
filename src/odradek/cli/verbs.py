"""Kafka's verb options: `odradek topics --create …` means `odradek topics create …`.

Kafka's tools take the verb as an option, ours take it as a word. `VerbGroup` turns the first into the second before
anything is parsed, so each verb is written once and takes only the options that belong to it.
"""

from typing import Any

from typer.core import TyperGroup

from odradek.cli.usage import WrongUsage


class VerbGroup(TyperGroup):
    """A group whose commands can also be given as options.

    `ctx` is typer's context class, which has been in different modules in different releases.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self._verb_first(ctx, args))

    def _verb_first(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or not args[0].startswith("-"):
            return args
        verbs = {f"--{name}": name for name in self.list_commands(ctx)}
        given = [arg for arg in args if arg in verbs]
        if len(given) > 1:
            raise WrongUsage(f"only one of {', '.join(verbs)} can be given, not {' and '.join(given)}")
        if given:
            return [verbs[given[0]], *(arg for arg in args if arg != given[0])]
        if "--help" in args:
            return args
        raise WrongUsage(f"say what to do: one of {', '.join(verbs.values())}")
