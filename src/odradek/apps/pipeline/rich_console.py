"""Consoles of rich, for pictures that move in place. Rich comes with Spark; the other commands draw without it."""

import sys
from typing import TextIO

from rich.console import Console

# Rich folds cells at 80 columns where there's no terminal to ask; a file or a pipe has no such edge.
_WIDTH_WITHOUT_TERMINAL = 10_000


def data_console() -> Console:
    """Console on standard output. Made anew for each use, so that it follows a redirected `sys.stdout`."""
    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL, highlight=False)


def note_console(file: TextIO | None = None) -> Console:
    """Console on standard error, or on its substitute; texts are never read as markup."""
    file = file or sys.stderr
    return Console(file=file, width=None if file.isatty() else _WIDTH_WITHOUT_TERMINAL, highlight=False, markup=False)
