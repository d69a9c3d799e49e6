"""Work that can be counted: the bytecodes that a call executes, the same on every machine however busy."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def opcodes_of(call: Callable[[], object]) -> int:
    """Count the opcodes of the call and of all Python code that it calls; a call of C code counts as one."""
    counted = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal counted
        if event == "opcode":
            counted += 1
        else:
            frame.f_trace_opcodes = True
            frame.f_trace_lines = False
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return counted
