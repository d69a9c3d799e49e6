"""Items for another broker, which its channel's thread sends together."""

import queue
import threading
from collections.abc import Callable
from typing import Any

import pytest

from odradek.broker.coordinator.transactions.batch_channel import BatchChannels
from odradek.client.broker_client import ConnectionFailed
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
    channels = BatchChannels(
        "test", lambda broker, connected: client, lambda client, items: exchanged.put(items), failed
    )
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", fail)
        assert channels.put(1, "a")
        assert channels.put(1, "b")
    assert given_back == [(["a"], "can't start new thread"), (["b"], "can't start new thread")]
    assert channels.put(1, "c")
    assert exchanged.get(timeout=PATIENCE_S) == ["c"]
    channels.stop()
    assert len(given_back) == 2


@pytest.mark.parametrize("while_connecting", [False, True])
def test_a_broker_that_is_gone_is_hung_up_on_while_it_is_waited_for(while_connecting: bool) -> None:
    """Also if it is frozen before it has answered the first request of the connection."""
    given_back: queue.Queue[list[str]] = queue.Queue()
    exchanged: queue.Queue[list[str]] = queue.Queue()
    waits = threading.Event()
    clients = [Client()]

    def await_answer(client: Client) -> None:
        waits.set()
        assert client.is_aborted.wait(PATIENCE_S)
        raise ConnectionFailed("aborted")

    def connect(broker: int, connected: Callable[[Any], None]) -> Any:
        connected(clients[-1])
        if while_connecting and len(clients) == 1:
            await_answer(clients[-1])
        return clients[-1]

    def exchange(client: Any, items: list[str]) -> None:
        if len(clients) == 1:
            await_answer(client)
        exchanged.put(items)

    channels = BatchChannels("test", connect, exchange, lambda items, error: given_back.put(items))
    assert channels.put(1, "a")
    assert waits.wait(PATIENCE_S)
    channels.hang_up_on_others({1, 2})
    assert not clients[0].is_aborted.is_set()
    channels.hang_up_on_others({2})
    assert given_back.get(timeout=PATIENCE_S) == ["a"]
    clients.append(Client())
    assert channels.put(1, "b")
    assert exchanged.get(timeout=PATIENCE_S) == ["b"]
    channels.stop()
    assert given_back.empty()


class Client:
    def __init__(self) -> None:
        self.is_aborted = threading.Event()

    def abort(self) -> None:
        self.is_aborted.set()

    def close(self) -> None:
        """Nothing is kept."""
