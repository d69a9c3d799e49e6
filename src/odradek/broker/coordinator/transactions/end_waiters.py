"""Requests that wait, for a limited time, for the end of their producer's previous transaction.

An end is answered when it is decided, before its markers are written. The first request of the producer's next
transaction often arrives before they are. Refused with CONCURRENT_TRANSACTIONS, it would come again after 20 ms or
more, which is several times as long as markers take. So it is decided again at the completion, or when its time is up:
then it is refused.
"""

import threading
from collections.abc import Callable
from functools import partial
from typing import Final

from odradek.broker.coordinator.transactions.marker_sender import later
from odradek.broker.coordinator.transactions.transaction_entry import Ending
from odradek.broker.purgatory.reaper import ExpirationReaper

WAIT_MS: Final = 100
WAITING_MAX: Final = 8
"""More requests than a producer sends before it has an answer."""


class EndWaiters:
    def __init__(self, reaper: ExpirationReaper) -> None:
        self._reaper = reaper
        self._lock = threading.Lock()

    def add(self, ending: Ending, decide_again: Callable[[], None]) -> bool:
        """Call `decide_again` once, at the release of the end or when the time is up; False: too many wait."""
        with self._lock:
            is_first = not ending.waiting
            if len(ending.waiting) >= WAITING_MAX:
                return False
            ending.waiting.append(decide_again)
        if is_first:
            later(self._reaper, WAIT_MS, partial(self.release, ending))
        return True

    def release(self, ending: Ending) -> None:
        """Decide all requests that wait for the end again; called without a lock."""
        with self._lock:
            waiting, ending.waiting = ending.waiting, []
        for decide_again in waiting:
            decide_again()
