"""Waiting for what happens in other threads and processes, however slow the machine."""

import time
from collections.abc import Callable

_LOOK_S = 0.01


def eventually(condition: Callable[[], bool], within_s: float = 60) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(_LOOK_S)
