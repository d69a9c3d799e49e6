"""Named and supervised threads of a broker: if an unexpected exception ends one, that is logged and counted.

An essential thread (a processor, an acceptor, a replica fetcher, the controller, …) is necessary for the broker: its
end is reported to the listener, and the broker stops. The broker continues without the others (the flight recorder, the
metrics endpoint).

A `SupervisedExecutor` runs tasks on named threads. An unexpected exception of a task is logged and counted in the same
way; its thread continues with the next task, so the broker does not stop.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from odradek.base.logs import get_logger

P = ParamSpec("P")
R = TypeVar("R")

log = get_logger(__name__)

FailureListener = Callable[[str], None]
"""Gets the reason why the process can't go on. Called on the thread that ends."""


class _Failures:
    def __init__(self) -> None:
        self.count = 0
        self.listener: FailureListener | None = None


_failures = _Failures()


def stop_on_failure(listener: FailureListener | None) -> None:
    """Set the listener for the end of an essential thread, one per process."""
    _failures.listener = listener


def failed_threads() -> int:
    """Number of threads and tasks of this process that an unexpected exception has ended."""
    return _failures.count


class SupervisedThread(threading.Thread):
    def __init__(
        self, target: Callable[..., None], name: str, args: tuple[Any, ...] = (), *, is_essential: bool = True
    ) -> None:
        super().__init__(target=target, name=name, args=args, daemon=True)
        self._is_essential = is_essential

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            _failures.count += 1
            log.exception("thread failed", thread=self.name, essential=self._is_essential)
            if self._is_essential and _failures.listener is not None:
                _failures.listener(f"the thread {self.name} failed: {type(error).__name__}: {error}")


class SupervisedExecutor(ThreadPoolExecutor):
    def __init__(self, name: str, threads: int = 1) -> None:
        super().__init__(threads, thread_name_prefix=name)

    def submit(self, task: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        def supervised() -> R:
            try:
                return task(*args, **kwargs)
            except Exception:
                _failures.count += 1
                log.exception("task failed", thread=threading.current_thread().name)
                raise

        return super().submit(supervised)


def start_worker(workers: list[threading.Thread], worker: SupervisedThread) -> None:
    """Start one more of threads that share a queue. Without it the others go on; RuntimeError: there are no others."""
    try:
        worker.start()
    except RuntimeError as error:
        if not workers:
            raise
        log.warning("thread can't be started", thread=worker.name, others=len(workers), error=str(error))
    else:
        workers.append(worker)
