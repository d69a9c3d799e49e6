"""The writer of a broker's journal. Whoever has something to record hands it over and goes on at once.

One bounded queue, one thread. Turning what happened into lines, writing them and rotating the files is the thread's
work. When it can't keep up, or the disk can't, entries are dropped and counted, and the count is written as soon as
something can be; nothing that the broker does ever waits for this or fails because of it.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from odradek.base.clock import Clock
from odradek.base.logs import get_logger
from odradek.recorder.entry import Entry, Kind, maybe_entry
from odradek.recorder.journals import file_name, parse_name
from odradek.recorder.picture import Picture

log = get_logger(__name__)

QUEUE_MAX = 20_000
FILES = 8
"""Among how many files the bytes are shared: the oldest goes when there are more."""
_GATHER_SECONDS = 0.01
_LINES_AT_ONCE = 1_000
_TAIL_BYTES = 1 << 20

Facts: TypeAlias = dict[str, Any]
"""The fields of one entry, without those that every entry has."""
Describe: TypeAlias = Callable[..., Iterable[Facts]]


@dataclass(slots=True, eq=False)
class Happening:
    """Something on its way into the journal; as a cause of others it is known by the line that it became."""

    time_ms: int
    describe: Describe
    subject: tuple[Any, ...]
    controller_epoch: int | None
    cause: "Happening | None"
    seq: int | None = None


class Records(Protocol):
    def record(
        self,
        describe: Describe,
        *subject: Any,
        controller_epoch: int | None = None,
        cause: Happening | None = None,
    ) -> Happening | None:
        """`describe(*subject)` is called later, on another thread: what it reads must not change any more.

        What is returned can be given as the cause of what follows.
        """


class NothingRecorded:
    def record(
        self,
        describe: Describe,
        *subject: Any,
        controller_epoch: int | None = None,
        cause: Happening | None = None,
    ) -> Happening | None:
        return None


NOTHING_RECORDED = NothingRecorded()


class Recorder:
    def __init__(self, directory: Path, broker_id: int, bytes_max: int, clock: Clock) -> None:
        self._directory = directory
        self._broker_id = broker_id
        self._bytes_max = bytes_max
        self._clock = clock
        self._queue: deque[Happening] = deque()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self.dropped = 0
        """Entries that were lost, since the start."""
        self._told_dropped = 0
        self._seq = 0
        self._file: FileIO | None = None
        self._file_bytes = 0
        self._head_bytes = 0
        self._picture = Picture()
        self._in_trouble = False
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """What has been recorded by now is written."""
        self._stopped.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def record(
        self,
        describe: Describe,
        *subject: Any,
        controller_epoch: int | None = None,
        cause: Happening | None = None,
    ) -> Happening | None:
        happening = Happening(self._clock.now_ms(), describe, subject, controller_epoch, cause)
        with self._lock:
            if len(self._queue) >= QUEUE_MAX:
                self.dropped += 1
                return None
            self._queue.append(happening)
        if not self._wake.is_set():
            self._wake.set()
        return happening

    # --- the writer's thread -------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._wake.wait()
            self._stopped.wait(_GATHER_SECONDS)
            self._wake.clear()
            self._write_waiting()
        self._write_waiting()
        if self._file is not None:
            self._file.close()

    def _write_waiting(self) -> None:
        waiting = deque(self._queue.popleft() for _ in range(len(self._queue)))
        try:
            if self._file is None:
                self._open()
            self._tell_of_dropped()
            while waiting:
                self._write_some(waiting)
            self._in_trouble = False
        except OSError as error:
            self._trouble(error, len(waiting))

    def _write_some(self, waiting: deque[Happening]) -> None:
        if self._file_bytes > max(self._bytes_max // FILES, 2 * self._head_bytes):
            self._begin_file()
        lines: list[str] = []
        while waiting and len(lines) < _LINES_AT_ONCE:
            lines.extend(self._lines(waiting[0]))
            waiting.popleft()
        self._append("".join(lines).encode())

    def _tell_of_dropped(self) -> None:
        lost = self.dropped - self._told_dropped
        if lost:
            facts = {"kind": Kind.DROPPED, "what": "Dropped", "count": lost}
            self._append(self._line(self._clock.now_ms(), facts).encode())
            self._told_dropped += lost

    def _lines(self, happening: Happening) -> Iterator[str]:
        cause = None if happening.cause is None else happening.cause.seq
        try:
            for facts in happening.describe(*happening.subject):
                shared = {"controller_epoch": happening.controller_epoch, "cause": cause}
                line = self._line(happening.time_ms, shared | facts)
                if happening.seq is None:
                    happening.seq = self._seq
                yield line
        except Exception:
            # an entry that can't be described is a fault of ours, and no reason to lose the others
            log.exception("could not be recorded", what=happening.describe.__name__)
            self.dropped += 1

    def _line(self, time_ms: int, facts: Facts) -> str:
        self._seq += 1
        entry = Entry(time_ms=time_ms, broker=self._broker_id, seq=self._seq, **facts)
        self._picture.apply(entry)
        return entry.as_line()

    def _append(self, data: bytes) -> None:
        assert self._file is not None
        self._file.write(data)
        self._file_bytes += len(data)

    def _trouble(self, error: OSError, lost: int) -> None:
        """Tried again with the next entries."""
        self.dropped += lost
        if self._file is not None:
            self._file.close()
            self._file = None
        if not self._in_trouble:
            log.warning("flight recorder can't write, entries are dropped", error=str(error))
            self._in_trouble = True

    # --- files ---------------------------------------------------------------------------------------------------

    def _own_files(self) -> list[Path]:
        """Oldest first."""
        named = ((parse_name(path.name), path) for path in self._directory.glob("recorder-*.jsonl"))
        return [path for name, path in sorted(named) if name is not None and name[0] == self._broker_id]

    def _open(self) -> None:
        """Goes on with the file that an earlier life of the broker left, after a line that its crash has torn."""
        self._directory.mkdir(parents=True, exist_ok=True)
        files = self._own_files()
        if not files:
            self._begin_file()
            return
        tail = _tail(files[-1])
        entries = [entry for line in tail.decode("utf-8", "replace").splitlines() if (entry := maybe_entry(line))]
        name = parse_name(files[-1].name)
        assert name is not None
        self._seq = max(self._seq, entries[-1].seq if entries else name[1])
        self._file = files[-1].open("ab", buffering=0)
        self._file_bytes = files[-1].stat().st_size
        if tail and not tail.endswith(b"\n"):
            self._append(b"\n")

    def _begin_file(self) -> None:
        if self._file is not None:
            self._file.close()
        path = self._directory / file_name(self._broker_id, self._seq + 1)
        self._file = path.open("ab", buffering=0)
        self._file_bytes = 0
        now_ms = self._clock.now_ms()
        head = "".join(self._line(now_ms, facts) for facts in list(self._picture.entries())).encode()
        self._append(head)
        self._head_bytes = len(head)
        self._drop_oldest()

    def _drop_oldest(self) -> None:
        files = self._own_files()
        while len(files) > FILES or (len(files) > 1 and sum(path.stat().st_size for path in files) > self._bytes_max):
            files.pop(0).unlink()


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        return file.read()
