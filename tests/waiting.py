"""Waiting for what happens in other threads and processes, however slow the machine."""

import time
from collections.abc import Callable

PATIENCE_S = 60
"""How long anything may take before it counts as not happening; a loaded machine is slow, not wrong."""
_LOOK_S = 0.01


def eventually(condition: Callable[[], bool], within_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(_LOOK_S)
