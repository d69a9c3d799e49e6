"""Views that a transform reads: the parameters of its function, or the names in its SQL. Pure."""

import re
from collections.abc import Iterable

from odradek.apps.pipeline.spec import PythonTransform, Transform

_WORD = re.compile(r"\w+")
# Comments and texts of SQL; a hint (/*+ BROADCAST(x) */) names a view that is read anyway.
_NO_NAMES = re.compile(r"--[^\n]*|/\*[^+].*?\*/|'(?:[^'\\]|\\.)*'", re.DOTALL)


def inputs_of(transform: Transform, text: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the known views whose names occur, also where a name is that of a column.

    Too many inputs keep a sink apart from others, and change no row of it; too few would.
    """
    if isinstance(transform, PythonTransform):
        declared = re.search(rf"def\s+{re.escape(transform.function)}\s*\(([^)]*)\)", text)
        text = declared[1] if declared else text
    else:
        text = _NO_NAMES.sub(" ", text)
    words = {word.lower() for word in _WORD.findall(text)}
    return tuple(name for name in known if name.lower() in words)
