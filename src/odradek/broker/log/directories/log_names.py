"""What the directories inside of a log directory are called, and what that says about them. Kafka's names.

orders-0                    a partition's log
orders-0.UUID-future        the copy of one that moves here from another directory
orders-0.UUID-delete        one that is being deleted
orders-0.UUID-stray         Kafka's own business with lost topics, left alone
"""

import re
from dataclasses import dataclass
from enum import Enum
from uuid import uuid4

from odradek.model.topology import TopicPartition

MAX_NAME = 255
_DELETE = "-delete"
_FUTURE = "-future"
_STRAY = "-stray"
_CURRENT_NAME = re.compile(r"([A-Za-z0-9._-]+)-(\d+)")
_FUTURE_NAME = re.compile(rf"([A-Za-z0-9._-]+)-(\d+)\.[^.\s]+{_FUTURE}")


class Kind(Enum):
    CURRENT = "the log that is read and written"
    FUTURE = "a copy that will take the place of a log in another directory"
    DELETED = "on its way out"
    STRAY = "left alone"
    FOREIGN = "not a log"


@dataclass(frozen=True, slots=True)
class LogName:
    kind: Kind
    partition: TopicPartition | None = None  # of current and future ones


def parse(name: str) -> LogName:
    if name.endswith(_DELETE):
        return LogName(Kind.DELETED)
    if name.endswith(_STRAY):
        return LogName(Kind.STRAY)
    if match := _FUTURE_NAME.fullmatch(name):
        return LogName(Kind.FUTURE, TopicPartition(match[1], int(match[2])))
    if match := _CURRENT_NAME.fullmatch(name):
        return LogName(Kind.CURRENT, TopicPartition(match[1], int(match[2])))
    return LogName(Kind.FOREIGN)


def current_name(tp: TopicPartition) -> str:
    return str(tp)


def future_name(tp: TopicPartition) -> str:
    """A new one each time. It may be longer than a file system takes: whoever asks for a move looks first."""
    return f"{tp}.{uuid4().hex}{_FUTURE}"


def deletion_name(tp: TopicPartition) -> str:
    """A new one each time; a long topic is cut, since nobody reads it from there."""
    end = f"-{tp.partition}.{uuid4().hex}{_DELETE}"
    return tp.topic[: MAX_NAME - len(end)] + end
