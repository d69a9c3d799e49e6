"""Threads that carry out the steps of TLS handshakes, whose signatures would hold up the clients of a network thread.

Addresses take turns, and one address has at most all threads but one: a flood of handshakes delays those of another
address by a step. Each connection has at most one step here, and connections that are not authenticated yet are
bounded in number (`ConnectionSetups`); so is the queue. Threads are started when there is work and none of them is
free.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable

from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread, start_worker

log = get_logger(__name__)

THREADS = 3

Step = Callable[[], None]


class HandshakePool:
    def __init__(self, threads: int = THREADS) -> None:
        self._max_threads = threads
        self._changed = threading.Condition()
        self._waiting: dict[str, deque[Step]] = {}
        """Steps by address; the address that comes next is first."""
        self._running: Counter[str] = Counter()
        self._threads: list[threading.Thread] = []
        self._idle_threads = 0
        self._stopped = False

    def submit(self, address: str, step: Step) -> None:
        """Carry out the step when it is the address's turn. Any thread. RuntimeError: there is no thread for it, and
        none can be started."""
        with self._changed:
            if self._stopped:
                return
            if self._idle_threads:
                self._changed.notify()
            elif len(self._threads) < self._max_threads:
                start_worker(self._threads, SupervisedThread(self._work, f"handshakes-{len(self._threads)}"))
            self._waiting.setdefault(address, deque()).append(step)

    def stop(self) -> None:
        """Drop the steps that have not begun, and wait for the end of the others."""
        with self._changed:
            self._stopped = True
            self._waiting.clear()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (taken := self._take()) is not None:
            address, step = taken
            try:
                step()
            except Exception:
                log.exception("step of a TLS handshake failed", address=address)
            with self._changed:
                self._running[address] -= 1
                if not self._running[address]:
                    del self._running[address]

    def _take(self) -> tuple[str, Step] | None:
        """Wait for a step. An address that has reached its number goes on when one of its steps ends: on the thread
        that ended it, so no other thread has to be woken."""
        with self._changed:
            while not self._stopped:
                for address, steps in self._waiting.items():
                    if self._running[address] < max(1, self._max_threads - 1):
                        return address, self._next_of(address, steps)
                self._idle_threads += 1
                self._changed.wait()
                self._idle_threads -= 1
            return None

    def _next_of(self, address: str, steps: deque[Step]) -> Step:
        step = steps.popleft()
        del self._waiting[address]
        if steps:
            self._waiting[address] = steps  # behind the other addresses
        self._running[address] += 1
        return step
