"""Reset of a consumer group's offsets: from a goal to one offset for each partition.

A `Goal` is the beginning, the end, an offset, a time, or a distance from the committed offset. `plan` sends only the
requests that the goal needs, limits every new offset to the range of its partition, and changes nothing.
"""

import re
from collections.abc import Callable, Container, Iterable, Mapping
from datetime import timedelta

from odradek.base.clock import SYSTEM_CLOCK, Clock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.value_classes import dataclass
from odradek.client.cluster_client import ClusterClient
from odradek.client.group_admin import committed_offsets
from odradek.client.moments import duration, parse_moment
from odradek.client.partition_offsets import list_offsets
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.list_offsets import EARLIEST, LATEST

Offsets = dict[TopicPartition, int]
_DURATION = re.compile(
    r"(?P<sign>-)?P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)


@dataclass(frozen=True, slots=True)
class Situation:
    """Partitions in question: their first and last offsets, and the committed ones of the group, if any."""

    earliest: Mapping[TopicPartition, int]
    latest: Mapping[TopicPartition, int]
    committed: Mapping[TopicPartition, int]
    at_time: Callable[[int], Mapping[TopicPartition, int | None]]
    now_ms: int


Goal = Callable[[TopicPartition, Situation], int]


@dataclass(frozen=True, slots=True)
class Move:
    tp: TopicPartition
    old: int | None  # None: no committed offset
    new: int
    end: int
    is_clamped: bool  # the requested offset is outside of the partition's range

    @property
    def old_lag(self) -> int | None:
        return None if self.old is None else self.end - self.old

    @property
    def new_lag(self) -> int:
        return self.end - self.new


def to_earliest(tp: TopicPartition, situation: Situation) -> int:
    return situation.earliest[tp]


def to_latest(tp: TopicPartition, situation: Situation) -> int:
    return situation.latest[tp]


def to_current(tp: TopicPartition, situation: Situation) -> int:
    """Return the committed offset; the end of a partition without one, as Kafka's tool does."""
    return situation.committed.get(tp, situation.latest[tp])


def to_offset(offset: int) -> Goal:
    return lambda tp, situation: offset


def shift_by(count: int) -> Goal:
    def shifted(tp: TopicPartition, situation: Situation) -> int:
        if tp not in situation.committed:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"the group has no offset in {tp} to shift; use --to-offset or --to-earliest"
            )
        return situation.committed[tp] + count

    return shifted


def to_time(timestamp_ms: int) -> Goal:
    """Goal: the first record that isn't older; the end if all are older."""

    def at(tp: TopicPartition, situation: Situation) -> int:
        found = situation.at_time(timestamp_ms).get(tp)
        return situation.latest[tp] if found is None else found

    return at


def by_duration(passed: timedelta) -> Goal:
    """Goal: the offsets at this time before now."""
    milliseconds = passed // timedelta(milliseconds=1)
    return lambda tp, situation: to_time(max(0, situation.now_ms - milliseconds))(tp, situation)


def from_file(offsets: Offsets) -> Goal:
    return lambda tp, situation: offsets[tp]


# By Kafka's names, from the text of the option.
GOALS: Mapping[str, Callable[[str], Goal]] = {
    "to-offset": lambda text: to_offset(int(text)),
    "shift-by": lambda text: shift_by(int(text)),
    "to-datetime": lambda text: to_time(parse_moment(text)),
    "by-duration": lambda text: by_duration(parse_duration(text)),
    "to-earliest": lambda _: to_earliest,
    "to-latest": lambda _: to_latest,
    "to-current": lambda _: to_current,
}


def plan(
    client: ClusterClient, group: str, partitions: Iterable[TopicPartition], goal: Goal, clock: Clock = SYSTEM_CLOCK
) -> list[Move]:
    """Return the changes that reach the goal."""
    asked = list(partitions)
    answers: dict[int, dict[TopicPartition, int | None]] = {}

    def at_time(timestamp_ms: int) -> Mapping[TopicPartition, int | None]:
        if timestamp_ms not in answers:
            found = list_offsets(client, dict.fromkeys(asked, timestamp_ms))
            answers[timestamp_ms] = {tp: answer.offset for tp, answer in found.items()}
        return answers[timestamp_ms]

    situation = Situation(
        earliest=offsets_at(client, asked, EARLIEST),
        latest=offsets_at(client, asked, LATEST),
        committed=committed_offsets(client, group),
        at_time=at_time,
        now_ms=clock.now_ms(),
    )
    return [_move(tp, goal(tp, situation), situation) for tp in asked]


def _move(tp: TopicPartition, wanted: int, situation: Situation) -> Move:
    first, last = situation.earliest[tp], situation.latest[tp]
    new = min(max(wanted, first), last)
    return Move(tp, situation.committed.get(tp), new, last, is_clamped=new != wanted)


def topics_with_offsets(client: ClusterClient, group: str, there: Container[str]) -> list[str]:
    """Return the topics that the group has committed offsets in and that still exist."""
    return sorted({tp.topic for tp in committed_offsets(client, group) if tp.topic in there})


def offsets_at(client: ClusterClient, partitions: Iterable[TopicPartition], time: int) -> Offsets:
    found = list_offsets(client, dict.fromkeys(partitions, time))
    return {tp: answer.offset or 0 for tp, answer in found.items()}


def parse_duration(text: str) -> timedelta:
    """`1h` or `15 minutes`, or ISO 8601 as Kafka's tool takes it: `P7D`, `PT1H30M`, `P1DT12H`."""
    if (plain := duration(text.strip())) is not None:
        return plain
    found = _DURATION.fullmatch(text)
    try:
        if found is None or text.endswith(("P", "T")):
            raise ValueError("neither plain nor ISO 8601")
        parts = {name: float(value) for name, value in found.groupdict().items() if value and name != "sign"}
        iso = timedelta(**parts)
        return -iso if found["sign"] else iso
    except (ValueError, OverflowError):
        raise ValueError(f"'{text[:40]}' is not a duration like 1h, 15m, P7D or PT1H30M") from None
