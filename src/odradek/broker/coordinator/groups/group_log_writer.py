"""A group with what the coordinator keeps beside it, and one thread's turn at it.

A group's lock is held while a decision is made. What it wants written is gathered with what other decisions want, and
appended when no group's lock is held: at the end of the turn; or, by a thread that serves many requests and says when
it has served them (`end_burst`), then, so that a hundred commits that came together are one batch. What is gathered is
appended in the order in which it was gathered, whoever does it.

That records are replicated is learned later, on any thread: perhaps at once, inside of the append. No thread takes a
group's lock while it holds another's, or while it appends: what finishes meanwhile is put aside until it is done.

Records of one group are settled in the order in which they lie in the log, so memory is always what a replay of some
beginning of the log would give.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

from odradek.base.errors import ErrorCode
from odradek.base.logs import get_logger
from odradek.broker.coordinator.groups.core.group import Group, GroupState
from odradek.broker.coordinator.groups.core.group_records import CommittedOffset, StateRecord, encode_key
from odradek.broker.coordinator.groups.core.offsets import Offsets
from odradek.broker.coordinator.groups.group_log import EncodedRecord, GroupLog
from odradek.broker.purgatory.reaper import Timer
from odradek.model.topology import TopicPartition

log = get_logger(__name__)

T = TypeVar("T")

OffsetChanges: TypeAlias = Mapping[TopicPartition, CommittedOffset | None]
"""New positions; None forgets one."""

_NO_CHANGES: OffsetChanges = {}
_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


class GroupEntry:
    """Entry of a group: guarded by `lock`, except for reads of the group's state."""

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
    """Records that are to be appended for a group. `settle` is told, under the group's lock, what became of them."""

    __slots__ = ("changes", "error", "held", "records", "settle")

    def __init__(
        self,
        held: GroupEntry,
        records: list[EncodedRecord],
        changes: OffsetChanges,
        settle: Callable[[ErrorCode], None],
    ) -> None:
        self.held = held
        self.records = records
        self.changes = changes
        self.settle = settle
        self.error: ErrorCode | None = None  # None: not known yet


class _Thread(threading.local):
    finished: list[GroupEntry] | None = None
    """What finished while this thread appends; None: it doesn't."""
    in_bursts = False
    """It says when it has served what it has read."""


class GroupLogWriter:
    def __init__(self, group_log: GroupLog) -> None:
        self._log = group_log
        self._thread = _Thread()
        self._order = threading.Lock()  # held while what was gathered is appended; never taken under a group's lock
        self._gathering = threading.Lock()  # guards the next, and nothing is done under it
        self._gathered: dict[int, list[Write]] = {}  # by offsets partition

    def turn(self, held: GroupEntry, action: Callable[[], T]) -> T:
        """Do something with the group under its lock; when it is free again, answer those whom it concerns."""
        thread = self._thread
        answers: list[Callable[[], None]] = []
        try:
            with held.lock:
                try:
                    return action()
                finally:
                    _settle(held)
                    if held.answers:
                        answers, held.answers = held.answers, answers
        finally:
            for answer in answers:
                _give(answer)
            if not thread.in_bursts:
                self.append_gathered()

    def append(
        self,
        held: GroupEntry,
        records: list[StateRecord],
        settle: Callable[[ErrorCode], None],
        changes: OffsetChanges = _NO_CHANGES,
    ) -> None:
        """During a turn at the group. What changes of its offsets is applied when the records are replicated."""
        write = Write(held, [], changes, settle)
        held.in_flight.append(write)
        try:
            write.records = [(encode_key(key), value) for key, value in records]
        except Exception:
            log.exception("group metadata encoding failed", group=held.group.id)
            write.error = ErrorCode.UNKNOWN_SERVER_ERROR
            return
        with self._gathering:
            self._gathered.setdefault(held.partition, []).append(write)

    def end_burst(self) -> None:
        """To be called again and again by a thread that serves requests, when it has served what it has read."""
        self._thread.in_bursts = True
        if self._gathered:
            self.append_gathered()

    @contextmanager
    def burst(self) -> Iterator[None]:
        """Turns at many groups, whose records are written together when all have had theirs."""
        thread = self._thread
        before, thread.in_bursts = thread.in_bursts, True
        try:
            yield
        finally:
            thread.in_bursts = before
            self.append_gathered()

    def append_gathered(self) -> None:
        """Append all gathered records before returning. Under no lock of a group."""
        thread = self._thread
        finished: list[GroupEntry] = []
        thread.finished = finished
        try:
            with self._order:
                with self._gathering:
                    gathered, self._gathered = self._gathered, {}
                for partition, writes in gathered.items():
                    self._append(partition, writes)
        finally:
            thread.finished = None
        for held in dict.fromkeys(finished):
            self.turn(held, _nothing)

    def _append(self, partition: int, writes: list[Write]) -> None:
        def done(error: ErrorCode) -> None:
            if error in _TOO_LARGE and len(writes) > 1:
                middle = len(writes) // 2  # one of them may be to blame, or only that they are many
                self._append(partition, writes[:middle])
                self._append(partition, writes[middle:])
                return
            for write in writes:
                write.error = error
            if (finished := self._thread.finished) is not None:
                finished.extend(write.held for write in writes)
            else:
                for held in dict.fromkeys(write.held for write in writes):
                    self.turn(held, _nothing)

        try:
            self._log.append(partition, [record for write in writes for record in write.records], done)
        except Exception:
            log.exception("group metadata append failed", partition=partition)
            done(ErrorCode.UNKNOWN_SERVER_ERROR)


def _settle(held: GroupEntry) -> None:
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
            log.exception("group transition after a metadata write failed", group=held.group.id)


def _give(answer: Callable[[], None]) -> None:
    try:
        answer()
    except Exception:
        log.exception("group response failed")


def _nothing() -> None:
    pass
