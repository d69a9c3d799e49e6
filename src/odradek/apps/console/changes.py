"""Log of the changes that are made through the console: user, time, change and result.

Kept in memory for the page, written as lines of JSON where there is a data directory, and logged by the process.
"""

import json
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from odradek.apps.console.access import Access
from odradek.apps.console.feeds import plainly
from odradek.base.clock import Clock
from odradek.base.errors import FatalError, KafkaError
from odradek.base.logs import get_logger
from odradek.client.broker_client import ConnectionFailed, UnsupportedByBroker
from odradek.client.cluster_client import ClusterClient

log = get_logger(__name__)

CHANGE_TIMEOUT_MS = 15_000
_KEPT = 200

T = TypeVar("T")


class NotDone(Exception):
    """A change was refused or failed; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Change:
    at_ms: int
    who: str
    what: str
    outcome: str


class Changes:
    def __init__(self, clock: Clock, *, read_only: bool, file: Path | None = None) -> None:
        self.read_only = read_only
        self._clock = clock
        self._file = file
        self._lock = threading.Lock()
        self._latest: deque[Change] = deque(maxlen=_KEPT)

    @property
    def latest(self) -> list[Change]:
        """Youngest first."""
        return list(self._latest)[::-1]

    def perform(self, access: Access, who: str | None, what: str, change: Callable[[ClusterClient], T]) -> T:
        """Make a change and log it, also if it fails. Blocks: call it on a thread."""
        if self.read_only:
            raise NotDone("This console is read-only.")
        if who is None:
            raise NotDone("Your session has ended: log in again.")
        self._note(who, what, "asked for")
        try:
            with access.client(CHANGE_TIMEOUT_MS) as client:
                result = change(client)
        except (KafkaError, ConnectionFailed, UnsupportedByBroker, FatalError, ValueError, OSError) as error:
            self._note(who, what, f"failed: {plainly(error)}")
            raise NotDone(plainly(error)) from error
        self._note(who, what, "done")
        return result

    def _note(self, who: str, what: str, outcome: str) -> None:
        change = Change(self._clock.now_ms(), who, what, outcome)
        log.info("change", who=who, what=what, outcome=outcome)
        with self._lock:
            self._latest.append(change)
            if self._file is not None:
                try:
                    with self._file.open("a", encoding="utf-8") as lines:
                        lines.write(json.dumps(asdict(change), ensure_ascii=False) + "\n")
                except OSError as error:
                    log.warning("the log of changes can't be written", file=self._file, error=str(error))
