import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from kazoo.protocol.connection import _SESSION_EXPIRED

from cut_proxy import CutProxy
from odradek.broker.zk.session import SessionEvent, ZkSession, ZkUnavailable

OpenSession = Callable[..., ZkSession]
WAIT = 60
LONG_SESSION_MS = 60_000


class Told:
    """Notifications of a session, in order."""

    def __init__(self) -> None:
        self.paths: queue.Queue[str] = queue.Queue()

    def until(self, last: str) -> list[str]:
        told = []
        while (path := self.paths.get(timeout=WAIT)) != last:
            told.append(path)
        return told


def _set(session: ZkSession, path: str) -> None:
    session.call(lambda zk: zk.set_async(path, b"new"))


def _marker(watching: ZkSession, other: ZkSession) -> None:
    """A change after all the others: when it is heard, so are they."""
    watching.watch_nodes(["/marker"])
    _set(other, "/marker")


def test_each_change_of_a_watched_node_is_told_once(open_session: OpenSession) -> None:
    told = Told()
    session, other = open_session(on_znode=told.paths.put), open_session()
    other.ensure_paths(["/written", "/deleted", "/parent", "/marker"])
    nodes = ["/written", "/deleted", "/created"]
    for _ in range(2):
        assert session.watch_nodes(nodes) == {"/written": True, "/deleted": True, "/created": False}
        assert session.watch_children(["/parent"]) == {"/parent": []}
    for path in ("/written", "/written"):
        _set(other, path)
    other.call(lambda zk: zk.delete_async("/deleted"))
    other.ensure_paths(["/created", "/parent/first", "/parent/second"])
    _marker(session, other)
    assert told.until("/marker") == ["/written", "/deleted", "/created", "/parent"]
    assert sorted(session.watch_children(["/parent"])["/parent"]) == ["first", "second"]


def test_the_children_of_a_node_that_comes_later(open_session: OpenSession) -> None:
    told = Told()
    session, other = open_session(on_znode=told.paths.put), open_session()
    other.ensure_paths(["/marker"])
    assert session.watch_children(["/later"]) == {"/later": []}
    other.ensure_paths(["/later"])
    _marker(session, other)
    assert told.until("/marker") == ["/later"]


def test_what_changed_while_the_connection_was_cut_is_told(open_session: OpenSession, proxy: CutProxy) -> None:
    told, events = Told(), queue.Queue[SessionEvent]()
    session = open_session(events.put, LONG_SESSION_MS, on_znode=told.paths.put, through=proxy)
    other = open_session()
    other.ensure_paths(["/node", "/parent", "/marker"])
    session.watch_nodes(["/node"])
    session.watch_children(["/parent"])
    proxy.cut()
    assert events.get(timeout=WAIT) is SessionEvent.CONNECTION_LOST
    _set(other, "/node")
    other.ensure_paths(["/parent/child"])
    proxy.mend()
    assert {told.paths.get(timeout=WAIT) for _ in range(2)} == {"/node", "/parent"}
    assert events.get(timeout=WAIT) is SessionEvent.CONNECTION_RESTORED, "the same session goes on"
    assert session.watch_children(["/parent"]) == {"/parent": ["child"]}
    session.watch_nodes(["/node"])
    _set(other, "/node")
    _marker(session, other)
    assert told.until("/marker") == ["/node"], "watched anew, and each told of once"


def test_nothing_is_told_while_zookeeper_is_away(open_session: OpenSession, proxy: CutProxy) -> None:
    told, events = Told(), queue.Queue[SessionEvent]()
    session = open_session(events.put, LONG_SESSION_MS, on_znode=told.paths.put, through=proxy)
    session.watch_nodes(["/node"])
    proxy.cut()
    assert events.get(timeout=WAIT) is SessionEvent.CONNECTION_LOST
    heard = threading.Event()
    session._client.handler.callback_queue.put(heard.set)
    assert heard.wait(WAIT)
    assert told.paths.empty(), "who looks now would look in vain"
    proxy.mend()
    assert told.paths.get(timeout=WAIT) == "/node"


def test_an_expired_session_tells_of_all_that_it_watched(open_session: OpenSession) -> None:
    told, events = Told(), queue.Queue[SessionEvent]()
    session = open_session(events.put, on_znode=told.paths.put)
    session.watch_nodes(["/node"])
    session._client._call(_SESSION_EXPIRED, session._client.handler.async_result())
    assert told.paths.get(timeout=WAIT) == "/node"
    assert [events.get(timeout=WAIT) for _ in range(2)] == [SessionEvent.SESSION_LOST, SessionEvent.SESSION_RENEWED]


def test_a_closed_session_tells_nothing(open_session: OpenSession) -> None:
    told = Told()
    session, other = open_session(on_znode=told.paths.put), open_session()
    session.watch_nodes(["/node"])
    session.close()
    other.ensure_paths(["/node"])
    assert told.paths.empty()


def test_the_patient_wait_until_zookeeper_is_back(open_session: OpenSession, proxy: CutProxy) -> None:
    events = queue.Queue[SessionEvent]()
    session = open_session(events.put, LONG_SESSION_MS, through=proxy)
    session.ensure_paths(["/node"])
    session._connection_timeout_ms = 300
    proxy.cut()
    assert events.get(timeout=WAIT) is SessionEvent.CONNECTION_LOST
    with ThreadPoolExecutor(1) as pool:
        until_available = pool.submit(lambda: session.call(lambda zk: zk.exists_async("/node"), until_available=True))
        with pytest.raises(ZkUnavailable):
            session.call(lambda zk: zk.exists_async("/node"))
        assert not until_available.done()
        proxy.mend()
        assert until_available.result(timeout=WAIT) is not None


def test_the_patient_are_released_when_the_session_is_closed(open_session: OpenSession, proxy: CutProxy) -> None:
    events = queue.Queue[SessionEvent]()
    session = open_session(events.put, LONG_SESSION_MS, through=proxy)
    proxy.cut()
    assert events.get(timeout=WAIT) is SessionEvent.CONNECTION_LOST
    with ThreadPoolExecutor(1) as pool:
        until_available = pool.submit(lambda: session.watch_nodes(["/node"]))
        session.close()
        with pytest.raises(ZkUnavailable):
            until_available.result(timeout=WAIT)
