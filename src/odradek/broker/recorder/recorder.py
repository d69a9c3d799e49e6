"""The writer of a broker's journal. `record` enqueues an entry and returns immediately.

One bounded queue, one thread. Turning what happened into lines, writing them and rotating the files is the thread's
work. When it can't keep up, or no directory can be written, entries are dropped and counted, and the count is written
as soon as something can be; nothing that the broker does ever waits for this or fails because of it. When the directory
of the journal fails, the lines that could not be written begin a file in another one.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from odradek.base.clock import Clock
from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread
from odradek.base.value_classes import dataclass
from odradek.broker.recorder.core.entry import JOURNAL_MOVED, Entry, Kind
from odradek.broker.recorder.core.picture import Picture
from odradek.broker.recorder.journal_files import JournalFiles

log = get_logger(__name__)

QUEUE_MAX = 20_000
_GATHER_SECONDS = 0.01
_LINES_AT_ONCE = 1_000
_SEQS_PER_MS = 1_000

Facts: TypeAlias = dict[str, Any]
"""The fields of one entry, without those that every entry has; with `time_ms` if it happened before it was handed
over."""
Describe: TypeAlias = Callable[..., Iterable[Facts]]


@dataclass(slots=True, eq=False)
class RecordedEvent:
    """An event on its way into the journal; as a cause of others it is known by its line."""

    time_ms: int
    describe: Describe
    subject: tuple[Any, ...]
    controller_epoch: int | None
    cause: "RecordedEvent | None"
    seq: int | None = None


class Records(Protocol):
    def record(
        self,
        describe: Describe,
        *subject: Any,
        controller_epoch: int | None = None,
        cause: RecordedEvent | None = None,
    ) -> RecordedEvent | None:
        """`describe(*subject)` is called later, on another thread: its arguments must not change any more.

        The result can be given as the cause of later entries.
        """

    def directory_failed(self, directory: Path) -> None:
        """Stop writing to the failed directory, if there is another."""


class NothingRecorded:
    def record(
        self,
        describe: Describe,
        *subject: Any,
        controller_epoch: int | None = None,
        cause: RecordedEvent | None = None,
    ) -> RecordedEvent | None:
        return None

    def directory_failed(self, directory: Path) -> None:
        pass


NOTHING_RECORDED = NothingRecorded()


@dataclass(frozen=True, slots=True)
class _Missing:
    """Entries that are lost and not yet reported as a gap."""

    count: int = 0
    since_ms: int = 0
    after: int = 0

    def more(self, count: int, since_ms: int, after: int = 0) -> "_Missing":
        """Add lost entries; the first of them gives the begin of the gap."""
        return _Missing(self.count + count, self.since_ms if self.count else since_ms, self.after or after)


class Recorder:
    def __init__(
        self,
        directories: Sequence[Path],
        broker_id: int,
        bytes_max: int,
        clock: Clock,
        *,
        makes_directories: bool = True,
    ) -> None:
        self._files = JournalFiles(directories, broker_id, bytes_max, makes_them=makes_directories)
        self._broker_id = broker_id
        self._clock = clock
        self._queue: deque[RecordedEvent] = deque()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self.dropped = 0
        """Entries that were lost, since the start."""
        self._not_queued = _Missing()
        self._not_written = _Missing()
        self._seq = 0
        self._written_seq = 0
        """Number of the last line on disk."""
        self._last_line_ms = self._written_ms = 0
        """Times of the last line made, and of the last line on disk."""
        self._picture = Picture()
        self._was_opened = False
        self._failing = False
        self._thread = SupervisedThread(target=self._run, name="recorder", is_essential=False)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Write the recorded events, and stop."""
        self._stopped.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def record(
        self,
        describe: Describe,
        *subject: Any,
        controller_epoch: int | None = None,
        cause: RecordedEvent | None = None,
    ) -> RecordedEvent | None:
        event = RecordedEvent(self._clock.now_ms(), describe, subject, controller_epoch, cause)
        with self._lock:
            if len(self._queue) >= QUEUE_MAX:
                self._drop(event.time_ms)
                return None
            self._queue.append(event)
        if not self._wake.is_set():
            self._wake.set()
        return event

    def directory_failed(self, directory: Path) -> None:
        self._files.abandon(directory)

    def _drop(self, time_ms: int) -> None:
        self.dropped += 1
        self._not_queued = self._not_queued.more(1, time_ms)

    # --- the writer's thread -------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._wake.wait()
            self._stopped.wait(_GATHER_SECONDS)
            self._wake.clear()
            self._write_waiting()
        self._write_waiting()
        self._files.close()

    def _write_waiting(self) -> None:
        waiting = deque(self._queue.popleft() for _ in range(len(self._queue)))
        if not self._was_opened:
            self._find_last()
        self._settle()
        self._tell_of_missing()
        while waiting:
            lines: list[str] = []
            taken = len(waiting)
            while waiting and len(lines) < _LINES_AT_ONCE:
                lines.extend(self._lines(waiting.popleft()))
            if not self._write(lines):
                self._not_written = self._not_written.more(len(lines), self._written_ms, self._written_seq)
                with self._lock:
                    self.dropped += taken - len(waiting)
            if waiting:
                self._settle()

    def _tell_of_missing(self) -> None:
        lines: list[str] = []
        lost, dropped = self._not_written, self._not_queued
        if lost.count:
            lines.append(self._gap_line("NotWritten", lost, "no directory could be written"))
        if dropped.count:
            facts = {"kind": Kind.DROPPED, "what": "Dropped", "count": dropped.count, "since_ms": dropped.since_ms}
            lines.append(self._line(self._clock.now_ms(), facts))
        if lines and self._write(lines):
            self._not_written = _Missing()
            with self._lock:
                self._not_queued = _Missing().more(self._not_queued.count - dropped.count, self._clock.now_ms())

    def _gap_line(self, what: str, missing: _Missing, text: str) -> str:
        facts: Facts = {"kind": Kind.GAP, "what": what, "count": missing.count or None, "after": missing.after}
        return self._line(self._clock.now_ms(), facts | {"since_ms": missing.since_ms or None, "text": text})

    def _lines(self, event: RecordedEvent) -> Iterator[str]:
        cause = None if event.cause is None else event.cause.seq
        try:
            for facts in event.describe(*event.subject):
                shared = {"controller_epoch": event.controller_epoch, "cause": cause}
                line = self._line(facts.pop("time_ms", event.time_ms), shared | facts)
                if event.seq is None:
                    event.seq = self._seq
                yield line
        except Exception:
            # an entry that can't be formatted is our bug, and must not cost the others
            log.exception("flight recorder entry lost", what=event.describe.__name__)
            with self._lock:
                self._drop(event.time_ms)

    def _line(self, time_ms: int, facts: Facts) -> str:
        self._seq += 1
        self._last_line_ms = time_ms
        entry = Entry(time_ms=time_ms, broker=self._broker_id, seq=self._seq, **facts)
        self._picture.apply(entry)
        return entry.as_line()

    # --- the files -----------------------------------------------------------------------------------------------

    def _find_last(self) -> None:
        """Go on after the last line of an earlier life.

        Where a directory is missing that may hold later lines, their numbers are not used again: the next number is
        one that no earlier life can have reached, made from the time.
        """
        self._was_opened = True
        self._seq, missing = self._files.find_last()
        self._written_seq = self._seq
        if not missing:
            return
        names = ", ".join(map(str, missing))
        log.warning("flight recorder: directory missing, earlier entries may be there", directories=names)
        unknown = _Missing(after=self._seq)
        self._seq = max(self._seq, self._clock.now_ms() * _SEQS_PER_MS)
        self._write([self._gap_line("DirectoryMissing", unknown, f"earlier entries may be in {names}")])

    def _settle(self) -> None:
        """Have a file with room, in a directory that has not failed."""
        if not self._files.is_open and self._reopened():
            return
        if not self._files.is_open or self._files.must_move or self._files.is_full:
            self._begin([])

    def _reopened(self) -> bool:
        try:
            self._files.reopen()
        except OSError:
            return False
        return True

    def _write(self, lines: list[str]) -> bool:
        """Write the entries; return whether it succeeded."""
        if not self._files.is_open:
            return self._begin(lines)
        try:
            self._files.append("".join(lines).encode())
        except OSError as error:
            return self._begin(lines, failure=error)
        self._wrote()
        return True

    def _begin(self, unwritten: list[str], *, failure: OSError | None = None) -> bool:
        """Begin a file with the lines that are numbered already, and with the picture after them.

        After a failure of the open file only other directories are tried: the file itself is, with the next lines.
        """
        left, last = self._files.directory, self._seq

        def content() -> bytes:
            head = [] if left in (None, self._files.directory) else [self._moved_line(str(left))]
            head += [self._line(self._clock.now_ms(), facts) for facts in list(self._picture.entries())]
            return "".join((*unwritten, *head)).encode()

        try:
            self._files.begin(last + 1 - len(unwritten), content, elsewhere=failure is not None)
        except OSError as error:
            self._seq = last  # a lost picture is not a lost event
            self._report_failure(failure or error)
            return False
        self._wrote()
        return True

    def _moved_line(self, left: str) -> str:
        after = self._written_seq
        text = f"the journal continues here; until entry {after} it is in {left}"
        facts: Facts = {"kind": Kind.LOG_DIR, "what": JOURNAL_MOVED, "directory": left, "after": after, "text": text}
        return self._line(self._clock.now_ms(), facts | {"since_ms": self._written_ms or None})

    def _wrote(self) -> None:
        self._written_seq, self._written_ms = self._seq, self._last_line_ms
        self._failing = False

    def _report_failure(self, error: OSError) -> None:
        """Log the failure; writing is tried again with the next entries."""
        self._files.close()
        if not self._failing:
            log.warning("flight recorder can't write, entries are dropped", error=str(error))
            self._failing = True
