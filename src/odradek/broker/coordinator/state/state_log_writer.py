"""State of one key (a group, a transactional id) with its unsettled records, and one thread's turn at it.

An entry's lock is held while a decision is made. What it wants written is gathered with what other decisions want, and
appended when no entry's lock is held: at the end of the turn; or, by a thread that serves many requests and says when
it has served them (`end_burst`), then, so that a hundred commits that came together are one batch. What is gathered is
appended in the order in which it was gathered, on any thread.

That records are replicated is learned later, on any thread: perhaps at once, inside of the append. No thread takes an
entry's lock while it holds another's, or while it appends: what finishes meanwhile is put aside until it is done.

Records of one entry are settled in the order in which they lie in the log, so memory is always what a replay of some
beginning of the log would give. All coordinators of a broker share one writer.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import TypeAlias, TypeVar

from odradek.base.errors import ErrorCode
from odradek.base.logs import get_logger
from odradek.broker.coordinator.state.core.state_batch import TransactionalProducer
from odradek.broker.coordinator.state.state_log import EncodedRecord, StateLog
from odradek.broker.log.core.verification import VerificationGuard

log = get_logger(__name__)

T = TypeVar("T")

_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


class StateEntry:
    """One key and its unsettled writes, guarded by `lock`."""

    __slots__ = ("answers", "in_flight", "key", "lock", "log", "partition")

    def __init__(self, key: str, state_log: StateLog, partition: int) -> None:
        self.key = key
        self.log = state_log
        self.partition = partition
        self.lock = threading.Lock()
        self.in_flight: deque[Write] = deque()
        self.answers: list[Callable[[], None]] = []  # to be given when the lock is free


class Write:
    """Records that are to be appended for an entry. `settle` is told, under the entry's lock, what became of them."""

    __slots__ = ("entry", "error", "guard", "producer", "records", "settle")

    def __init__(
        self,
        entry: StateEntry,
        records: list[EncodedRecord],
        settle: Callable[[ErrorCode], None],
        producer: TransactionalProducer | None = None,
        guard: VerificationGuard | None = None,
    ) -> None:
        """`producer`: the records are part of its transaction, of which `guard` is the proof."""
        self.entry = entry
        self.records = records
        self.settle = settle
        self.producer = producer
        self.guard = guard
        self.error: ErrorCode | None = None  # None: not known yet

    def apply(self) -> None:
        """Change memory as the records say. Called once, under the entry's lock, when they are replicated."""


_Place: TypeAlias = tuple[StateLog, int]


class _Thread(threading.local):
    finished: list[StateEntry] | None = None
    """Entries that finished while this thread appends; None: it doesn't append."""
    in_bursts = False
    """True for a thread that calls `end_burst` when it has served what it has read."""


class StateLogWriter:
    def __init__(self) -> None:
        self._thread = _Thread()
        self._order = threading.Lock()  # held while what was gathered is appended; never taken under an entry's lock
        self._gathering = threading.Lock()  # guards the next, and nothing is done under it
        self._gathered: dict[_Place, list[Write]] = {}

    def turn(self, entry: StateEntry, action: Callable[[], T]) -> T:
        """Do something with the entry under its lock; when it is free again, give the answers."""
        thread = self._thread
        answers: list[Callable[[], None]] = []
        try:
            with entry.lock:
                try:
                    return action()
                finally:
                    _settle(entry)
                    if entry.answers:
                        answers, entry.answers = entry.answers, answers
        finally:
            for answer in answers:
                _give(answer)
            if not thread.in_bursts:
                self.append_gathered()

    def append(self, write: Write) -> None:
        """During a turn at the entry."""
        entry = write.entry
        entry.in_flight.append(write)
        if write.error is not None:
            return
        with self._gathering:
            self._gathered.setdefault((entry.log, entry.partition), []).append(write)

    def end_burst(self) -> None:
        """End a burst: called by a thread that serves requests, each time it has served what it has read. Answers that
        are given now may gather more: offsets, when their group has become part of the transaction."""
        self._thread.in_bursts = True
        while self._gathered:
            self.append_gathered()

    @contextmanager
    def burst(self) -> Iterator[None]:
        """Turns at many entries, whose records are written together when all have had theirs."""
        thread = self._thread
        before, thread.in_bursts = thread.in_bursts, True
        try:
            yield
        finally:
            thread.in_bursts = before
            self.append_gathered()

    def append_gathered(self) -> None:
        """Append all that was gathered before. Called under no lock of an entry."""
        thread = self._thread
        finished: list[StateEntry] = []
        thread.finished = finished
        try:
            with self._order:
                with self._gathering:
                    gathered, self._gathered = self._gathered, {}
                for place, writes in gathered.items():
                    for _, together in groupby(writes, key=_apart):
                        self._append(place, list(together))
        finally:
            thread.finished = None
        for entry in dict.fromkeys(finished):
            self.turn(entry, _nothing)

    def _append(self, place: _Place, writes: list[Write]) -> None:
        def done(error: ErrorCode) -> None:
            if error in _TOO_LARGE and len(writes) > 1:
                middle = len(writes) // 2  # one of them may be to blame, or only that they are many
                self._append(place, writes[:middle])
                self._append(place, writes[middle:])
                return
            for write in writes:
                write.error = error
            if (finished := self._thread.finished) is not None:
                finished.extend(write.entry for write in writes)
            else:
                for entry in dict.fromkeys(write.entry for write in writes):
                    self.turn(entry, _nothing)

        state_log, partition = place
        records = [record for write in writes for record in write.records]
        try:
            if (producer := writes[0].producer) is None:
                state_log.append(partition, records, done)
            else:
                state_log.append(partition, records, done, producer, writes[0].guard)
        except Exception:
            log.exception("state can't be written", topic=state_log.topic, partition=partition)
            done(ErrorCode.UNKNOWN_SERVER_ERROR)


def _apart(write: Write) -> object:
    """A batch belongs to one transaction or to none."""
    return None if write.producer is None else id(write)


def _settle(entry: StateEntry) -> None:
    in_flight = entry.in_flight
    while in_flight and (error := in_flight[0].error) is not None:
        write = in_flight.popleft()
        try:
            if not error:
                write.apply()
            write.settle(error)
        except Exception:
            log.exception("can't go on from a settled record", key=entry.key)


def _give(answer: Callable[[], None]) -> None:
    try:
        answer()
    except Exception:
        log.exception("answer of a coordinator lost")


def _nothing() -> None:
    pass
