"""Names of the directories inside of a log directory.

orders-0                    a partition's log
orders-0.UUID-future        the copy of a log that moves here from another directory
orders-0.UUID-delete        a log that is being deleted
orders-0.UUID-stray         a log that its broker no longer hosts, set aside
"""

import re
from enum import Enum
from typing import Final
from uuid import UUID

from odradek.base.value_classes import dataclass
from odradek.model.topology import TopicPartition

MAX_NAME: Final = 255
_DELETE: Final = "-delete"
_FUTURE: Final = "-future"
_STRAY: Final = "-stray"
_CURRENT_NAME: Final = re.compile(r"([A-Za-z0-9._-]+)-(\d+)")
_FUTURE_NAME: Final = re.compile(rf"([A-Za-z0-9._-]+)-(\d+)\.[^.\s]+{_FUTURE}")
_STRAY_NAME: Final = re.compile(rf"([A-Za-z0-9._-]+)-(\d+)\.[^.\s]+{_STRAY}")


class LogKind(Enum):
    CURRENT = "the log that is read and written"
    FUTURE = "a copy that will take the place of a log in another directory"
    DELETED = "on its way out"
    STRAY = "left alone"
    FOREIGN = "not a log"


@dataclass(frozen=True, slots=True)
class LogName:
    kind: LogKind
    partition: TopicPartition | None = None  # of current, future and stray logs


def parse(name: str) -> LogName:
    if name.endswith(_DELETE):
        return LogName(LogKind.DELETED)
    if name.endswith(_STRAY):
        return LogName(LogKind.STRAY, _partition(_STRAY_NAME.fullmatch(name)))
    if match := _FUTURE_NAME.fullmatch(name):
        return LogName(LogKind.FUTURE, _partition(match))
    if match := _CURRENT_NAME.fullmatch(name):
        return LogName(LogKind.CURRENT, _partition(match))
    return LogName(LogKind.FOREIGN)


def current_name(tp: TopicPartition) -> str:
    return str(tp)


def future_name(tp: TopicPartition, unique: UUID) -> str:
    """Name of a copy. It may be longer than a file system takes: a request for a move is checked before."""
    return f"{tp}.{unique.hex}{_FUTURE}"


def deletion_name(tp: TopicPartition, unique: UUID) -> str:
    """Name of a log to delete. A long topic name is truncated, because it is not read from there."""
    return _cut(tp, f"{unique.hex}{_DELETE}")


def stray_name(tp: TopicPartition, unique: UUID) -> str:
    """Name of a log to set aside. A long topic is cut."""
    return _cut(tp, f"{unique.hex}{_STRAY}")


def _cut(tp: TopicPartition, ending: str) -> str:
    end = f"-{tp.partition}.{ending}"
    return tp.topic[: MAX_NAME - len(end)] + end


def _partition(match: "re.Match[str] | None") -> TopicPartition | None:
    return None if match is None else TopicPartition(match[1], int(match[2]))
