"""Chooses, once per process, between the compiled inner loop and Python: `compiled` is None where Python runs.

Python runs where the library is not built (no C compiler), doesn't fit (another processor, an older build), or
`ODRADEK_PURE=1` asks for it. `IMPLEMENTATION` and `REASON` are for log lines, metrics and `odradek --version`.
"""

import os
from importlib import import_module
from typing import Final

from odradek.native.interface import InnerLoop

INTERFACE: Final = 7
"""The number of the interface, as in `inner_loop.c`; both change together, so that a library built before the change
is not used. A function that is added leaves it as it is: its users ask whether the library has it."""
PURE_VARIABLE: Final = "ODRADEK_PURE"
_LIBRARY: Final = "odradek.native._inner_loop"


def _load() -> tuple[InnerLoop | None, str]:
    if os.environ.get(PURE_VARIABLE, "0") not in ("", "0"):
        return None, f"{PURE_VARIABLE} is set"
    try:
        library: InnerLoop = import_module(_LIBRARY)
    except ModuleNotFoundError:
        return None, "not built, make setup builds it where there is a C compiler"
    except ImportError as error:
        return None, str(error)
    if library.INTERFACE != INTERFACE:
        return None, "built from an older source, make setup builds it anew"
    return library, ""


compiled, REASON = _load()
IMPLEMENTATION: Final = "python" if compiled is None else "compiled"


def description() -> str:
    return f"inner loop: {IMPLEMENTATION}" + (f" ({REASON})" if REASON else "")
