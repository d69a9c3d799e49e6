"""The bounded queue between the processors and the handler threads.

Processors offer, handlers take. A full queue refuses; a refused processor keeps the request, stops reading that
connection, and is woken once there is room. Handler threads are started when there is work and none of them is free.
"""

import itertools
import threading
from collections import deque
from typing import Protocol

from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread, start_worker
from odradek.broker.network.request import Application, InboundRequest

log = get_logger(__name__)


class Waiter(Protocol):
    def retry(self) -> None:
        """Called when there is room again, on any thread; the room may be gone at the next offer."""


class RequestChannel:
    def __init__(self, application: Application, *, capacity: int, max_threads: int) -> None:
        self._application = application
        self._capacity = capacity
        self._max_threads = max_threads
        self._changed = threading.Condition()
        self._queue: deque[InboundRequest] = deque()
        self._refused: set[Waiter] = set()
        self._threads: list[threading.Thread] = []
        self._numbers = itertools.count()
        self._idle_threads = 0
        self._stopped = False

    @property
    def size(self) -> int:
        return len(self._queue)

    def offer(self, request: InboundRequest, waiter: Waiter) -> bool:
        """Queue the request, or refuse it and tell the waiter when there is room. RuntimeError: there is no thread for
        it, and none can be started."""
        with self._changed:
            if len(self._queue) >= self._capacity:
                self._refused.add(waiter)
                return False
            if self._idle_threads > len(self._queue):
                self._changed.notify()
            elif len(self._threads) < self._max_threads and not self._stopped:
                start_worker(self._threads, SupervisedThread(self._handle, f"handler-{next(self._numbers)}"))
            self._queue.append(request)
            return True

    def resize(self, max_threads: int) -> None:
        """Set the number of handlers. Surplus ones end after the request that they have."""
        with self._changed:
            self._max_threads = max_threads
            self._changed.notify_all()

    def stop(self, timeout_s: float) -> None:
        """Let the handlers finish their requests and the queue, as far as the time allows."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
            threads = self._threads.copy()
        for thread in threads:
            thread.join(timeout_s)

    def _handle(self) -> None:
        while (request := self._take()) is not None:
            try:
                self._application.run(request)
            except Exception:
                log.exception("request failed", connection=request.connection.id)
                request.close_connection("its request failed")

    def _is_surplus(self) -> bool:
        if len(self._threads) <= self._max_threads:
            return False
        self._threads.remove(threading.current_thread())
        return True

    def _take(self) -> InboundRequest | None:
        with self._changed:
            while not self._queue:
                if self._stopped or self._is_surplus():
                    return None
                self._idle_threads += 1
                self._changed.wait()
                self._idle_threads -= 1
            if self._is_surplus():
                return None
            request = self._queue.popleft()
            refused, self._refused = self._refused, set()
        for waiter in refused:
            waiter.retry()
        return request
