import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.protocol.connection import _SESSION_EXPIRED

from cut_proxy import CutProxy
from odradek.base.errors import ConfigError, FatalError
from odradek.broker.zk.session import SessionEvent, ZkSession, ZkUnavailable
from odradek.local.zookeeper_server import EmbeddedZooKeeper, free_port

OpenSession = Callable[..., ZkSession]


def _expire(session: ZkSession) -> None:
    """As if the server had said that the session is over."""
    session._client._call(_SESSION_EXPIRED, session._client.handler.async_result())


def test_the_path_of_the_connect_string_is_created(open_session: OpenSession, zookeeper: str) -> None:
    session = open_session()
    session.ensure_paths(["/a/b"])
    chroot = session.connect_string.partition("/")[2]
    outside = ZkSession(zookeeper, session_timeout_ms=4000, connection_timeout_ms=4000)
    outside.start()
    try:
        assert outside.call(lambda zk: zk.get_children_async(f"/{chroot}/a")) == ["b"]
    finally:
        outside.close()


class SlowToHear(ZkSession):
    """Make kazoo call its listeners late, as on a busy machine."""

    def _on_state(self, state: str) -> None:
        time.sleep(0.2)
        super()._on_state(state)


def test_a_session_that_has_started_has_a_number(zookeeper: str) -> None:
    session = SlowToHear(zookeeper, session_timeout_ms=30_000, connection_timeout_ms=30_000)
    try:
        session.start()
        assert session.is_own(session.session_id)
    finally:
        session.close()


def test_a_pipeline_answers_in_order_with_results_and_errors(open_session: OpenSession) -> None:
    session = open_session()
    numbers = range(1000)
    session.pipeline([lambda zk, n=n: zk.create_async(f"/{n}", str(n).encode()) for n in numbers if n % 2 == 0])
    outcomes = session.pipeline([lambda zk, n=n: zk.get_async(f"/{n}") for n in numbers])
    assert [o[0] for o in outcomes[::2]] == [str(n).encode() for n in numbers if n % 2 == 0]
    assert {type(o).__name__ for o in outcomes[1::2]} == {"NoNodeError"}


def test_no_more_requests_are_in_flight_than_allowed(zookeeper: str) -> None:
    session = ZkSession(zookeeper, session_timeout_ms=30_000, connection_timeout_ms=30_000, in_flight_max=3)
    session.start()
    pending: list[Any] = []
    most = 0

    def read(zk: KazooClient) -> Any:
        nonlocal most
        pending[:] = [result for result in pending if not result.ready()]
        pending.append(zk.get_async("/"))
        most = max(most, len(pending))
        return pending[-1]

    try:
        assert len(session.pipeline([read] * 200)) == 200
        assert 1 <= most <= 3
    finally:
        session.close()


def test_a_lost_session_is_told_and_renewed(open_session: OpenSession) -> None:
    events: queue.Queue[SessionEvent] = queue.Queue()
    session = open_session(events.put)
    before = session.session_id
    _expire(session)
    assert [events.get(timeout=60) for _ in range(2)] == [SessionEvent.SESSION_LOST, SessionEvent.SESSION_RENEWED]
    assert session.session_id != before


def test_requests_wait_for_a_server_that_restarts_and_not_for_ever(tmp_path: Path) -> None:
    events: queue.Queue[SessionEvent] = queue.Queue()
    server = EmbeddedZooKeeper(tmp_path)
    server.start()
    session = ZkSession(server.connect, session_timeout_ms=60_000, connection_timeout_ms=60_000, listener=events.put)
    try:
        session.start()
        session.ensure_paths(["/kept"])
        server.kill()
        assert events.get(timeout=60) is SessionEvent.CONNECTION_LOST
        session._connection_timeout_ms = 300
        with pytest.raises(ZkUnavailable, match="does not answer"):
            session.call(lambda zk: zk.exists_async("/kept"))
        session._connection_timeout_ms = 60_000
        server.start()
        assert session.call(lambda zk: zk.exists_async("/kept")) is not None
        assert events.get(timeout=60) is SessionEvent.CONNECTION_RESTORED
    finally:
        session.close()
        server.stop()


def test_requests_of_a_start_wait_for_a_server_that_is_away(open_session: OpenSession, proxy: CutProxy) -> None:
    events: queue.Queue[SessionEvent] = queue.Queue()
    session = open_session(events.put, through=proxy)
    session.ensure_paths(["/kept"])
    session._connection_timeout_ms = 0
    proxy.cut()
    while events.get(timeout=60) is not SessionEvent.CONNECTION_LOST:
        continue
    is_given_up = threading.Event()
    with ThreadPoolExecutor(1) as callers, session.waiting_for_server(is_given_up.is_set):
        waiting = callers.submit(session.call, lambda zk: zk.exists_async("/kept"))
        proxy.mend()
        assert waiting.result(60) is not None
        proxy.cut()
        while events.get(timeout=60) is not SessionEvent.CONNECTION_LOST:
            continue
        waiting = callers.submit(session.call, lambda zk: zk.exists_async("/kept"))
        is_given_up.set()
        with pytest.raises(ZkUnavailable):
            waiting.result(60)


def test_a_server_that_lets_nobody_in_is_left_before_the_session_expires(
    open_session: OpenSession, proxy: CutProxy
) -> None:
    events: queue.Queue[SessionEvent] = queue.Queue()
    session = open_session(events.put, 90_000, through=proxy)
    session._client.handler.connect_seconds_max = 1.0
    proxy.cut()
    assert events.get(timeout=60) is SessionEvent.CONNECTION_LOST
    proxy.swallow_answers()
    assert proxy.swallowed.wait(60), "it takes the connection and never answers"
    proxy.mend()
    assert events.get(timeout=60) is SessionEvent.CONNECTION_RESTORED


def test_nobody_there() -> None:
    session = ZkSession(f"127.0.0.1:{free_port()}", session_timeout_ms=4000, connection_timeout_ms=300)
    with pytest.raises(FatalError, match=r"did not answer within 300 ms: start it, or correct zookeeper\.connect"):
        session.start()


def test_a_connect_string_that_is_none() -> None:
    with pytest.raises(ConfigError, match=r"zookeeper\.connect"):
        ZkSession("localhost:port", session_timeout_ms=4000, connection_timeout_ms=300)


def test_a_closed_session_refuses(open_session: OpenSession) -> None:
    session = open_session()
    session.close()
    with pytest.raises(ZkUnavailable):
        session.call(lambda zk: zk.get_children_async("/"))


def test_an_ensemble_of_which_some_are_down(zookeeper: str) -> None:
    down = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    session = ZkSession(
        f"{down[0]},{zookeeper},{down[1]}/ensemble/a", session_timeout_ms=30_000, connection_timeout_ms=60_000
    )
    try:
        session.start()
        session.ensure_paths(["/node"])
        assert session.call(lambda zk: zk.get_children_async("/")) == ["node"]
    finally:
        session.close()
