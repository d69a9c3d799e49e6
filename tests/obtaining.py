"""Programs that tests need and that a machine may not have."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


class Unobtainable(Exception):
    """It can't be had on this machine; the message says why."""


@contextmanager
def skipped_if_unobtainable() -> Iterator[None]:
    try:
        yield
    except Unobtainable as reason:
        pytest.skip(str(reason))
