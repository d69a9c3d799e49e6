"""State of one key (a group, a transactional id) with its unsettled records, and the writer of such records.

A decision about an entry is made in a turn, under the entry's lock. Its records are put into the queue of their
partition, behind the records of other decisions. `flush` appends the queues, each in its order, as one batch if
possible; it holds no entry's lock. Each turn ends with a flush, unless its thread flushes later (`deferred`): a thread
that serves many requests does so after each round of them, so that a hundred commits of one round are one batch.

The writer learns on any thread that records are replicated, perhaps immediately, inside of the append. No thread takes
an entry's lock while it holds another one, or while it appends: entries that become settled in the meantime get their
turn after it.

Records of one entry are settled in the order of the log, so offsets, assignments and transactions in memory equal a
replay of a prefix of the log. Only a group that has become empty changes before its record is written. All coordinators
of a broker share one writer.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from threading import get_ident
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

    __slots__ = ("answers", "in_flight", "is_gone", "key", "lock", "log", "partition")

    def __init__(self, key: str, state_log: StateLog, partition: int) -> None:
        self.key = key
        self.log = state_log
        self.partition = partition
        self.lock = threading.Lock()
        self.in_flight: deque[Write] = deque()
        self.answers: list[Callable[[], None]] = []  # to be given when the lock is free
        self.is_gone = False
        """Another broker's by now, or removed. Set before anything else is known of the next leadership."""


class Write:
    """Records that are to be appended for an entry. `settle` is called with the result, under the entry's lock."""

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
        """Apply the records in memory. Called once, under the entry's lock, when they are replicated."""


_Place: TypeAlias = tuple[StateLog, int]


_NO_THREAD = 0


class StateLogWriter:
    def __init__(self) -> None:
        self._queues: dict[_Place, list[Write]] = {}
        self._queueing = threading.Lock()  # guards the queues and `_put_off`; nothing else is done under it
        self._order = threading.Lock()  # held while queues are appended; never taken under an entry's lock
        self._appender = _NO_THREAD  # holds `_order`
        self._finished: list[StateEntry] = []  # entries whose records were settled inside of an append of the appender
        self._deferring: set[int] = set()  # threads that flush later
        self._put_off: dict[Callable[[], None], None] = {}  # actions for after the answers; nearly always empty

    def turn(self, entry: StateEntry, action: Callable[[], T]) -> T:
        """Perform the action under the entry's lock; after releasing it, send the answers and flush."""
        try:
            return self._turn(entry, action)
        finally:
            if get_ident() not in self._deferring:
                self.flush()

    def _turn(self, entry: StateEntry, action: Callable[[], T]) -> T:
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

    def append(self, write: Write) -> None:
        """Queue the records; the caller has the turn of the entry."""
        entry = write.entry
        entry.in_flight.append(write)
        if write.error is not None:
            return
        with self._queueing:
            self._queues.setdefault((entry.log, entry.partition), []).append(write)

    def put_off(self, action: Callable[[], None]) -> None:
        """Perform an action once, after all answers of this flush, even if several of them request it. Called during an
        answer.
        """
        with self._queueing:
            self._put_off[action] = None

    @contextmanager
    def deferred(self) -> Iterator[Callable[[], None]]:
        """Turns of this thread within the block don't flush. The block gets a function that does, if there is need;
        its end always does."""
        thread = get_ident()
        is_outermost = thread not in self._deferring
        self._deferring.add(thread)
        try:
            yield self._flush_if_needed
        finally:
            if is_outermost:
                self._deferring.discard(thread)
            self.flush()

    def _flush_if_needed(self) -> None:
        if self._queues or self._put_off:
            self.flush()

    def flush(self) -> None:
        """Append the queues, and settle the entries that finish by that: their answers may put more into the queues, as
        offsets when their group has become part of the transaction. All that was in the queues before is appended
        when it returns, by this thread or another. Called under no lock of an entry."""
        while True:
            for entry in dict.fromkeys(self._append_queues()):
                self._turn(entry, _nothing)
            if self._put_off:
                self._carry_out_put_off()
            if not self._queues and not self._put_off:
                return

    def _carry_out_put_off(self) -> None:
        """Defer flushes of this thread: all records that its actions put into the queues are written together."""
        with self._queueing:
            put_off, self._put_off = self._put_off, {}
        thread = get_ident()
        is_outermost = thread not in self._deferring
        self._deferring.add(thread)
        try:
            for action in put_off:
                _give(action)
        finally:
            if is_outermost:
                self._deferring.discard(thread)

    def _append_queues(self) -> list[StateEntry]:
        """Return the entries whose records were settled at once, by success or failure."""
        with self._order:
            self._appender = get_ident()
            try:
                with self._queueing:
                    queues, self._queues = self._queues, {}
                for place, writes in queues.items():
                    for _, together in groupby(writes, key=_apart):
                        self._append(place, list(together))
            finally:
                self._appender = _NO_THREAD
                finished, self._finished = self._finished, []
        return finished

    def _append(self, place: _Place, writes: list[Write]) -> None:
        def done(error: ErrorCode) -> None:
            if error in _TOO_LARGE and len(writes) > 1:
                middle = len(writes) // 2  # one record may be the cause, or only the size of the batch
                self._append(place, writes[:middle])
                self._append(place, writes[middle:])
                return
            for write in writes:
                write.error = error
            if self._appender == get_ident():
                self._finished.extend(write.entry for write in writes)
            else:
                for entry in dict.fromkeys(write.entry for write in writes):
                    self._turn(entry, _nothing)
                if get_ident() not in self._deferring:
                    self.flush()  # what follows from all of them is written together

        state_log, partition = place
        records = [record for write in writes for record in write.records]
        try:
            if (producer := writes[0].producer) is None:
                state_log.append(partition, records, done)
            else:
                state_log.append(partition, records, done, producer, writes[0].guard)
        except Exception:
            log.exception("coordinator state can't be written", topic=state_log.topic, partition=partition)
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
            log.exception("coordinator failed to apply a committed record", key=entry.key)


def _give(answer: Callable[[], None]) -> None:
    try:
        answer()
    except Exception:
        log.exception("coordinator response failed")


def _nothing() -> None:
    pass
