"""Parts of a broker that its logs use: the clock, a thread for slow work, listeners."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from odradek.base.clock import SYSTEM_CLOCK, Clock
from odradek.base.value_classes import dataclass
from odradek.broker.log.files.background import IMMEDIATE, Background
from odradek.model.topology import TopicPartition

FailureCallback: TypeAlias = Callable[[Path, OSError], None]
"""Listener that gets the broker's log directory and the first I/O error of a log in it."""

TruncationCallback: TypeAlias = Callable[[Path, TopicPartition, int], None]
"""Listener that a log's writer calls before the log is cut back to an offset."""


def _ignore_failure(directory: Path, error: OSError) -> None:
    pass


def _ignore_truncation(directory: Path, partition: TopicPartition, offset: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class LogEnvironment:
    """The defaults are for tools and tests, which have no listeners."""

    clock: Clock = SYSTEM_CLOCK
    background: Background = IMMEDIATE
    on_failure: FailureCallback = _ignore_failure
    on_truncate: TruncationCallback = _ignore_truncation


ALONE = LogEnvironment()
