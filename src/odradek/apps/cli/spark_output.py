"""Standard error of Spark's processes, kept off the terminal."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from odradek.base.errors import FatalError


@contextmanager
def spark_output_in(log: Path) -> Iterator[TextIO]:
    """Redirect standard error to the file; the block gets the terminal for progress output."""
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


@contextmanager
def log_in_errors(log: Path) -> Iterator[None]:
    """Name the log in an error, if Spark has written to it."""
    before = log.stat().st_size if log.exists() else 0
    try:
        yield
    except FatalError as error:
        if log.exists() and log.stat().st_size > before:
            raise FatalError(f"{error} (Spark's log: {log})") from error
        raise
