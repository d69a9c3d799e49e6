"""Colours and weight of text, on terminals only, without loading anything."""

import os
from typing import TextIO

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
    "bold red": "1;31",
    "bold green": "1;32",
}


def styled(text: str, style: str, stream: TextIO) -> str:
    """The text with that style if the stream is a terminal that takes colours and whose user wants them."""
    if not style or not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m"
