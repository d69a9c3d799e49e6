"""Waiting for what happens in other threads and processes, however slow the machine."""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_S = 60
"""Time after which an event counts as not happening; a loaded machine is slow, not wrong."""
_LOOK_S, _LOOK_S_MAX = 0.01, 0.05
"""Pauses between looks grow: hundreds of looks a second would slow down the event itself."""


T = TypeVar("T")


def promptly(attempt: Callable[[], T], within_s: float) -> T:
    """Return the result of an action that took no longer; it is repeated while the machine is too slow to tell."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        began = time.monotonic()
        result = attempt()
        if time.monotonic() - began < within_s:
            return result
        assert time.monotonic() < deadline, "it always takes longer"


def eventually(condition: Callable[[], bool], within_s: float = PATIENCE_S) -> None:
    deadline, pause_s = time.monotonic() + within_s, _LOOK_S
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.1, _LOOK_S_MAX)
