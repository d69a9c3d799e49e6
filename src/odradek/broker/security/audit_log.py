"""The audit log: changes, refusals and failed logins as JSON lines, in files of bounded size.

    {"time": "…", "event": "denied", "principal": "User:eve", "host": "10.0.0.7", "request": "PRODUCE", …}

Changes and refusals have files of their own, each half of the size, and threads of their own: a client without rights
can cause any number of refusals, which must not displace the changes.

Entries are handed to a thread by a bounded queue, so that a slow disk delays no request; entries that found it full are
counted, and the next line tells how many were lost. Entries are made of names, never of values, and hold no secret.
"""

import json
import queue
from pathlib import Path

from odradek.base.clock import Clock
from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread

log = get_logger(__name__)

FILE_NAME = "odradek-audit.log"
REFUSED_FILE_NAME = "odradek-audit-refused.log"
FILES_KEPT = 4
"""Files of changes, and of refusals."""
_QUEUED_MAX = 10_000

Entry = dict[str, object]
_REASON_MAX = 249


def login_failure(host: str, listener: str, reason: str, principal: str = "") -> Entry:
    """A login that failed. `principal`: empty where no user of that name is known."""
    return {
        "event": "login failed",
        "principal": principal,
        "host": host,
        "listener": listener,
        "reason": reason[:_REASON_MAX],
    }


class AuditLog:
    def __init__(self, directory: Path, max_bytes: int, clock: Clock) -> None:
        """`max_bytes`: of all files together."""
        self._changes = _Lines(directory / FILE_NAME, max_bytes // 2, clock)
        self._refusals = _Lines(directory / REFUSED_FILE_NAME, max_bytes // 2, clock)

    @property
    def lost(self) -> int:
        return self._changes.lost + self._refusals.lost

    def start(self) -> None:
        self._changes.start()
        self._refusals.start()

    def stop(self) -> None:
        """Write the queued entries, and end."""
        self._changes.stop()
        self._refusals.stop()

    def record_change(self, entry: Entry) -> None:
        """Any thread; never blocks."""
        self._changes.record(entry)

    def record_refusal(self, entry: Entry) -> None:
        """Record failures too: a failed change, a failed login. Any thread; never blocks."""
        self._refusals.record(entry)


class _Lines:
    """Entries of one kind."""

    def __init__(self, path: Path, max_bytes: int, clock: Clock) -> None:
        self._path = path
        self._file_bytes_max = max(1, max_bytes // FILES_KEPT)
        self._clock = clock
        self._queue: queue.Queue[Entry | None] = queue.Queue(_QUEUED_MAX)
        self.lost = 0
        self._lost_reported = 0
        self._thread = SupervisedThread(target=self._run, name=path.stem.removeprefix("odradek-"))

    def start(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._thread.start()

    def stop(self) -> None:
        """Write the queued entries, and end."""
        self._queue.put(None)
        self._thread.join()

    def record(self, entry: Entry) -> None:
        """Any thread; never blocks."""
        try:
            self._queue.put_nowait({"time_ms": self._clock.now_ms(), **entry})
        except queue.Full:
            self.lost += 1

    def _run(self) -> None:
        while (entry := self._queue.get()) is not None:
            if self.lost > self._lost_reported:
                entry["lost_before"] = self.lost - self._lost_reported
                self._lost_reported = self.lost
            try:
                self._write(json.dumps(entry, ensure_ascii=True, default=str) + "\n")
            except OSError as error:
                self.lost += 1
                log.error("audit log can't be written", path=str(self._path), error=str(error))

    def _write(self, line: str) -> None:
        if self._path.exists() and self._path.stat().st_size + len(line) > self._file_bytes_max:
            self._rotate()
        with self._path.open("a", encoding="ascii") as file:
            file.write(line)

    def _rotate(self) -> None:
        for number in range(FILES_KEPT - 1, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number}")
            newer = self._path if number == 1 else self._path.with_name(f"{self._path.name}.{number - 1}")
            if newer.exists():
                newer.replace(older)
