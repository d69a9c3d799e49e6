"""`odradek broker`: runs one broker in the foreground, as kafka-server-start does."""

from pathlib import Path
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Argument, Option
from odradek.apps.cli.grammar.noun import command
from odradek.apps.cli.usage import Exit
from odradek.base.errors import FatalError


def check_override(text: str) -> None:
    key, equals, _ = text.partition("=")
    if not key or not equals:
        raise FatalError(f"takes KEY=VALUE, not {text!r}")


@command(examples=["odradek broker server.properties --override broker.id=1 --override log.dirs=/data/1"])
def broker(
    properties: Annotated[Path, Argument(metavar="SERVER.PROPERTIES", help="Settings of the broker.")],
    override: Annotated[
        list[str] | None,
        Option(
            "--override",
            metavar="KEY=VALUE",
            help="A setting in place of the one in the file; may be given again.",
            show_default=False,
            check=check_override,
        ),
    ] = None,
) -> None:
    """Run one broker in the foreground, as kafka-server-start does."""
    from odradek.broker.main import run as run_broker

    overrides = dict(text.split("=", 1) for text in override or ())
    if code := run_broker(properties, overrides):
        raise Exit(code)
