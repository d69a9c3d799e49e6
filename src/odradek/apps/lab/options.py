"""Values of the laboratories' options. Each parser raises FatalError at a text that it refuses."""

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from odradek.base.errors import FatalError

# With more, the slow server could not answer new sessions in time.
LAG_MS_MAX = 1500


def numbers(least: int, most: int) -> Callable[[str], list[int]]:
    """`3,10,30`: whole numbers within the limits, each once."""

    def parse(text: str) -> list[int]:
        items = [item.strip() for item in text.split(",")]
        if not all(item.isdecimal() and least <= int(item) <= most for item in items):
            raise FatalError(f"{text!r} is not a list of numbers from {least} to {most}, such as 3,10")
        return list(dict.fromkeys(int(item) for item in items))

    return parse


def choices(known: tuple[str, ...]) -> Callable[[str], list[str]]:
    """Parse `one,three`: some of the known names, in their order."""

    def parse(text: str) -> list[str]:
        items = {item.strip() for item in text.split(",")}
        if unknown := sorted(items - set(known)):
            raise FatalError(f"there is no {', '.join(map(repr, unknown))}; there are {', '.join(known)}")
        return [name for name in known if name in items]

    return parse


def check_page(text: str) -> None:
    """Refuse an impossible path of the page before hours of work, not after."""
    path = Path(text)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise FatalError(f"{text!r} can't be written: give a file in a directory that exists")


def end_cleanly_when_killed() -> None:
    """SIGTERM ends the experiment as Ctrl-C does: the servers that it started go with it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


class Progress:
    """Reporter of the current step, and its duration, on standard error."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __call__(self, line: str) -> None:
        print(f"[{time.monotonic() - self._began:5.0f} s] {line}", file=sys.stderr, flush=True)
