"""Steps of handshakes on threads of their own: addresses take turns, and none has all threads."""

import threading
from collections.abc import Iterator

import pytest

from odradek.broker.network.handshake_pool import HandshakePool
from waiting import eventually


class Steps:
    """Steps that wait until they are let go."""

    def __init__(self, pool: HandshakePool) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self._pool = pool
        self._may_end = threading.Semaphore(0)

    def submit(self, address: str) -> None:
        def step() -> None:
            self.begun.append(address)
            self._may_end.acquire()
            self.ended.append(address)

        self._pool.submit(address, step)

    def let_go(self, count: int) -> None:
        self._may_end.release(count)


@pytest.fixture
def pool() -> Iterator[HandshakePool]:
    pool = HandshakePool(threads=3)
    yield pool
    pool.stop()


def test_an_address_leaves_a_thread_to_the_others(pool: HandshakePool) -> None:
    steps = Steps(pool)
    for _ in range(10):
        steps.submit("flood")
    eventually(lambda: len(steps.begun) == 2)
    steps.submit("other")
    eventually(lambda: steps.begun == ["flood", "flood", "other"])
    steps.let_go(11)
    eventually(lambda: len(steps.ended) == 11)


def test_addresses_take_turns() -> None:
    pool = HandshakePool(threads=1)
    steps = Steps(pool)
    for address in ("a", "a", "a", "b", "c", "b"):
        steps.submit(address)
    steps.let_go(6)
    eventually(lambda: len(steps.ended) == 6)
    assert steps.begun[0] == "a"
    assert sorted(steps.begun[1:4]) == ["a", "b", "c"], "each address once, before one comes again"
    pool.stop()


def test_a_step_that_fails_ends_no_thread(pool: HandshakePool) -> None:
    def failing() -> None:
        raise ValueError("a step")

    for _ in range(5):
        pool.submit("a", failing)
    done = threading.Event()
    pool.submit("a", done.set)
    assert done.wait(20)


def test_nothing_is_begun_after_the_end(pool: HandshakePool) -> None:
    steps = Steps(pool)
    for _ in range(5):
        steps.submit("a")
    eventually(lambda: len(steps.begun) == 2)
    ending = threading.Thread(target=pool.stop)
    ending.start()
    eventually(lambda: pool._stopped)
    steps.let_go(2)
    ending.join(20)
    steps.submit("b")
    assert steps.ended == ["a", "a"]
    assert steps.begun == ["a", "a"]


def test_a_thread_that_can_not_be_started_is_tried_again(pool: HandshakePool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection whose step has no thread is closed by its processor."""
    done = threading.Event()
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", cannot_start)
        for _ in range(5):
            with pytest.raises(RuntimeError, match="can't start"):
                pool.submit("a", done.set)
    assert not done.is_set()
    pool.submit("a", done.set)
    assert done.wait(20)


def cannot_start(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
