"""The console's reading of ZooKeeper: an answer that doesn't come is waited for in bounds, and told."""

import threading
from typing import Any

import pytest
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from odradek.apps.console.readings import coordination
from odradek.apps.console.readings.coordination import CoordinationState, ZooKeeperReader


class QueuedRequest:
    """As kazoo's for a connection that was lost a moment ago: answered when it is back."""

    def get(self, timeout: float | None = None) -> Any:
        threading.Event().wait(timeout)
        raise KazooTimeoutError


class SuspendedClient:
    connected = True

    def __init__(self, **_: object) -> None:
        self.is_stopped = False

    def start(self, timeout: float) -> None: ...

    def get_async(self, _: str) -> QueuedRequest:
        return QueuedRequest()

    def stop(self) -> None:
        self.is_stopped = True
        raise KazooException("the writer thread did not end")

    def close(self) -> None: ...


@pytest.mark.timeout(30)
def test_a_request_that_is_queued_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[SuspendedClient] = []

    def client(**options: object) -> SuspendedClient:
        made.append(SuspendedClient(**options))
        return made[-1]

    monkeypatch.setattr(coordination, "KazooClient", client)
    monkeypatch.setattr(coordination, "_TIMEOUT_S", 0.01)
    before = CoordinationState("zk:2181", 1, 5, {0: 7})
    reader = ZooKeeperReader("zk:2181")
    found = reader.read(None, before)  # type: ignore[arg-type]
    assert found == CoordinationState("zk:2181", 1, 5, {0: 7}, answers=False)
    assert [each.is_stopped for each in made] == [True]
    reader.read(None, found)  # type: ignore[arg-type]
    assert len(made) == 2, "with a session of its own"
