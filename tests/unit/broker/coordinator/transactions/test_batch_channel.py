"""Items for another broker, which its channel's thread sends together."""

import queue
import threading
from typing import Any

import pytest

from odradek.broker.coordinator.transactions.batch_channel import BatchChannels
from waiting import PATIENCE_S


def test_items_come_back_while_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Markers are sent again later, verifications are answered. The next item has a thread."""

    def fail(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def failed(items: list[str], error: Exception) -> None:
        given_back.append((items, str(error)))

    given_back: list[tuple[list[str], str]] = []
    exchanged: queue.Queue[list[str]] = queue.Queue()
    client: Any = Client()
    channels = BatchChannels("test", lambda broker: client, lambda client, items: exchanged.put(items), failed)
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", fail)
        assert channels.put(1, "a")
        assert channels.put(1, "b")
    assert given_back == [(["a"], "can't start new thread"), (["b"], "can't start new thread")]
    assert channels.put(1, "c")
    assert exchanged.get(timeout=PATIENCE_S) == ["c"]
    channels.stop()
    assert len(given_back) == 2


class Client:
    def abort(self) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        """Nothing is kept."""
