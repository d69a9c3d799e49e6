"""Standard error of Spark's processes, kept off the terminal."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


@contextmanager
def spark_output_in(log: Path) -> Iterator[TextIO]:
    """Send standard error to the file; the terminal is passed on for progress output."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        with os.fdopen(os.dup(kept), "w", buffering=1) as terminal:
            yield terminal
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
