"""`odradek man`: the manual pages, made from the grammar of the commands."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Argument, Option
from odradek.apps.cli.grammar.noun import command
from odradek.apps.cli.output import note
from odradek.apps.cli.usage import WrongUsage
from odradek.base.errors import FatalError


@command(
    examples=[
        "odradek man",
        "odradek man topics",
        "odradek man --write ~/.local/share/man/man1",
    ]
)
def man(
    name: Annotated[
        str | None, Argument(metavar="COMMAND", help="The command to show the page of.", show_default="odradek itself")
    ] = None,
    write: Annotated[
        Path | None, Option("--write", metavar="DIR", help="Write all pages as files, odradek.1, odradek-topics.1, ….")
    ] = None,
) -> None:
    """Show a manual page on a terminal, or print it as roff elsewhere; --write writes all of them."""
    from odradek.apps.cli.manual_pages import manual_pages

    if write is not None:
        if name is not None:
            raise WrongUsage("--write writes every page; leave COMMAND out", "--write")
        _write(write, manual_pages())
        return
    pages = manual_pages()
    page = "odradek" if name is None else f"odradek-{name}"
    if page not in pages:
        raise WrongUsage(f"there is no page of '{name}'; `odradek --help` lists the commands")
    if sys.stdout.isatty() and shutil.which("man"):
        subprocess.run(["man", "-l", "-"], input=pages[page].encode(), check=False)
    else:
        sys.stdout.write(pages[page])


def _write(directory: Path, pages: dict[str, str]) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for page, text in pages.items():
            (directory / f"{page}.1").write_text(text, "utf-8")
    except OSError as error:
        raise FatalError(f"{directory} can't be written: {error.strerror}") from None
    note(f"wrote {len(pages)} pages to {directory}")
