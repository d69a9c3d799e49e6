"""A thread that reads changes from ZooKeeper when a watch fires, and waits for ZooKeeper without a timeout."""

import threading
from collections.abc import Callable, Collection
from typing import Protocol

from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread
from odradek.broker.zk.session import SessionEvent, ZkUnavailable

log = get_logger(__name__)

_RETRY_SECONDS = 1.0


class CatchUp(Protocol):
    def __call__(self, *, everything: bool) -> None:
        """Watch, then read what changed, or everything."""


class ChangeFollower:
    def __init__(self, name: str, catch_up: CatchUp) -> None:
        self._catch_up = catch_up
        self._wake = threading.Condition()
        self._due = self._all_due = self._stopped = False
        self._thread = SupervisedThread(target=self._run, name=name)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop, before or after the session is closed."""
        with self._wake:
            self._stopped = True
            self._wake.notify()

    def refresh(self, *, everything: bool = False) -> None:
        """Have changes read, when a watch fired; `everything` when the session was renewed. Never blocks."""
        with self._wake:
            self._due = True
            self._all_due |= everything
            self._wake.notify()

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._due or self._stopped)
                if self._stopped:
                    return
                everything, self._due, self._all_due = self._all_due, False, False
            try:
                self._catch_up(everything=everything)
            except ZkUnavailable:
                return  # raised only when the session was closed
            except Exception as error:
                log.error("changes can't be read, trying again", thread=self._thread.name, error=repr(error))
                with self._wake:
                    self._wake.wait_for(lambda: self._stopped, timeout=_RETRY_SECONDS)
                    self._due = self._all_due = True


class Refresh(Protocol):
    def __call__(self, *, everything: bool = False) -> None: ...


def refresh_on_changes(
    refresh: Refresh,
    paths: Collection[str],
    on_znode: list[Callable[[str], None]],
    on_session_event: list[Callable[[SessionEvent], None]],
) -> None:
    """Have changes read when one of the znodes fires, and everything when the session was renewed."""

    def znode_changed(path: str) -> None:
        if path in paths:
            refresh()

    def session_changed(event: SessionEvent) -> None:
        if event is SessionEvent.SESSION_RENEWED:
            refresh(everything=True)

    on_znode.append(znode_changed)
    on_session_event.append(session_changed)
