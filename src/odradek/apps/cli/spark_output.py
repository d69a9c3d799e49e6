"""What Spark's processes say on standard error, kept out of a person's sight."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


@contextmanager
def spark_output_in(log: Path) -> Iterator[TextIO]:
    """It goes to the file; the terminal is given to whoever shows something on it."""
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
