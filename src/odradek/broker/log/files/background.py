"""Background work of the log: fsync of a finished segment, removal of deleted files.

The broker's scheduler executes it. `IMMEDIATE` executes each task in the calling thread, without its delay: for tools
and tests.
"""

from collections.abc import Callable
from typing import Protocol


class Background(Protocol):
    def once(self, name: str, action: Callable[[], object], *, delay_ms: int = 0) -> None:
        """Execute the action after the delay, on some thread. Errors are logged."""


class Immediate:
    def once(self, name: str, action: Callable[[], object], *, delay_ms: int = 0) -> None:
        action()


IMMEDIATE = Immediate()
