"""A group with what the coordinator keeps beside it, and one thread's turn at it.

A group's lock is held while a decision is made and its records are appended. That they are replicated is learned later,
on any thread: perhaps at once, inside of the append; perhaps inside of another group's append, which made the log's
high watermark move. No thread ever takes a group's lock while it holds another's: what finishes while it holds one is
put aside until it doesn't.

Records of one group are settled in the order in which they lie in the log, so memory is always what a replay of some
beginning of the log would give.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

from odradek.base.errors import ErrorCode
from odradek.base.logs import get_logger
from odradek.coordinator.group import Group, GroupState
from odradek.coordinator.group_log import GroupLog, StateRecord
from odradek.coordinator.group_records import CommittedOffset
from odradek.coordinator.offsets import Offsets
from odradek.model.topology import TopicPartition
from odradek.purgatory.reaper import Timer

log = get_logger(__name__)

T = TypeVar("T")

OffsetChanges: TypeAlias = Mapping[TopicPartition, CommittedOffset | None]
"""New positions; None forgets one."""

_NO_CHANGES: OffsetChanges = {}


class HeldGroup:
    """Everything in it is guarded by `lock`, but that anybody may look at the group's state."""

    __slots__ = ("answers", "group", "in_flight", "lock", "offsets", "partition", "shown", "timer")

    def __init__(self, group: Group, offsets: Offsets, partition: int) -> None:
        self.lock = threading.Lock()
        self.group = group
        self.offsets = offsets
        self.partition = partition
        self.timer: Timer | None = None
        self.in_flight: deque[Write] = deque()
        self.answers: list[Callable[[], None]] = []  # to be given when the lock is free
        self.shown: tuple[GroupState, int] = (group.state, group.generation)  # of which the log of the broker tells

    def unsettled_offsets(self) -> set[TopicPartition]:
        return {tp for write in self.in_flight for tp in write.changes}


class Write:
    """Records that were appended for a group. `settle` is called with what became of them, under the group's lock."""

    __slots__ = ("changes", "error", "held", "settle")

    def __init__(self, held: HeldGroup, changes: OffsetChanges, settle: Callable[[ErrorCode], None]) -> None:
        self.held = held
        self.changes = changes
        self.settle = settle
        self.error: ErrorCode | None = None  # None: not known yet


class _Aside(threading.local):
    """What finished while this thread held a group's lock; None: it holds none."""

    finished: list[HeldGroup] | None = None


class GroupWrites:
    def __init__(self, group_log: GroupLog) -> None:
        self._log = group_log
        self._aside = _Aside()

    def turn(self, held: HeldGroup, action: Callable[[], T]) -> T:
        """Do something with the group under its lock; when it is free again, answer those whom it concerns."""
        answers: list[Callable[[], None]] = []
        finished: list[HeldGroup] = []
        self._aside.finished = finished
        try:
            with held.lock:
                try:
                    return action()
                finally:
                    _settle(held)
                    if held.answers:
                        answers, held.answers = held.answers, answers
        finally:
            self._aside.finished = None
            for answer in answers:
                _give(answer)
            for other in finished:
                if other is not held:
                    self.turn(other, _nothing)

    def append(
        self,
        held: HeldGroup,
        records: list[StateRecord],
        settle: Callable[[ErrorCode], None],
        changes: OffsetChanges = _NO_CHANGES,
    ) -> None:
        """During a turn at the group. What changes of its offsets is applied when the records are replicated."""
        write = Write(held, changes, settle)
        held.in_flight.append(write)

        def done(error: ErrorCode) -> None:
            write.error = error
            if (finished := self._aside.finished) is not None:
                finished.append(held)
            else:
                self.turn(held, _nothing)

        try:
            self._log.append(held.partition, records, done)
        except Exception:
            log.exception("records of a group can't be made", group=held.group.id)
            write.error = ErrorCode.UNKNOWN_SERVER_ERROR


def _settle(held: HeldGroup) -> None:
    in_flight = held.in_flight
    while in_flight and (error := in_flight[0].error) is not None:
        write = in_flight.popleft()
        if not error:
            for tp, committed in write.changes.items():
                if committed is None:
                    held.offsets.pop(tp, None)
                else:
                    held.offsets[tp] = committed
        try:
            write.settle(error)
        except Exception:
            log.exception("group can't go on from its record", group=held.group.id)


def _give(answer: Callable[[], None]) -> None:
    try:
        answer()
    except Exception:
        log.exception("an answer to a group's member is lost")


def _nothing() -> None:
    pass
