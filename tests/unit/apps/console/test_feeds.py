"""A feed reads while it is wanted and rests when it isn't."""

import threading
import time
from collections.abc import Callable

import pytest

pytest.importorskip("nicegui", reason="the console needs odradek[console]")

from odradek.apps.console import feeds as feeds_module
from odradek.apps.console.access import Access
from odradek.apps.console.feeds import Feeds
from odradek.base.errors import ErrorCode, FatalError, KafkaError
from odradek.client.cluster_client import ClusterClient

PATIENCE_S = 30


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_nobody_looks_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds_module, "LEASE_MS", 100)
    reads: list[int | None] = []
    closed = threading.Event()

    def read(client: ClusterClient, before: int | None) -> int:
        reads.append(before)
        return (before or 0) + 1

    feed = Feeds(Access("127.0.0.1:1")).feed("x", read, 10, closed.set)
    assert reads == []

    def is_read() -> bool:
        feed.want()
        return len(reads) > 1

    _until(is_read)
    _until(lambda: feed.is_idle)
    assert reads[:2] == [None, 1]
    assert closed.is_set()
    count = len(reads)
    time.sleep(0.1)
    assert len(reads) == count, "it rests"

    def is_read_again() -> bool:
        feed.want()
        return len(reads) > count

    _until(is_read_again)


def test_trouble_is_told_beside_what_was_seen_last() -> None:
    def read(client: ClusterClient, before: str | None) -> str:
        if before is None:
            return "seen"
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "broker 2 is not in the cluster")

    feed = Feeds(Access("127.0.0.1:1")).feed("x", read, 10)
    _until(lambda: feed.want().problem is not None)
    assert (feed.reading.value, feed.reading.problem) == ("seen", "broker 2 is not in the cluster")


def test_of_a_session_that_has_ended_nothing_is_shown() -> None:
    access = Access("127.0.0.1:1")
    feed = Feeds(access).feed("x", lambda client, before: "secret", 10)
    _until(lambda: feed.want().value == "secret")
    access.close()
    assert feed.want().value is None
    assert feed.want().problem == "your session has ended: log in again"
    _until(lambda: feed.is_idle)
    with pytest.raises(FatalError, match="log in again"):
        access.client(1_000)
