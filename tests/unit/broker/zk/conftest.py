from collections.abc import Callable, Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest

from cut_proxy import CutProxy
from odradek.broker.zk.registration import ensure_roots
from odradek.broker.zk.session import SessionEvent, ZkSession
from odradek.broker.zk.store import ZkStore
from odradek.model.topology import ControllerTerm

OpenSession = Callable[..., ZkSession]


@pytest.fixture
def proxy(zookeeper: str) -> Iterator[CutProxy]:
    """Between a session and ZooKeeper, for those that were opened with `through`."""
    proxy = CutProxy(zookeeper)
    yield proxy
    proxy.close()


@pytest.fixture
def open_session(zookeeper: str) -> Iterator[OpenSession]:
    """Opens sessions that share a path of this test's own; all are closed in the end."""
    root = f"/{uuid4()}"
    with ExitStack() as opened:

        def open_one(
            listener: Callable[[SessionEvent], None] = lambda event: None,
            session_timeout_ms: int = 30_000,
            *,
            on_znode: Callable[[str], None] = lambda path: None,
            through: CutProxy | None = None,
        ) -> ZkSession:
            session = ZkSession(
                (through.connect if through else zookeeper) + root,
                session_timeout_ms=session_timeout_ms,
                connection_timeout_ms=30_000,
                listener=listener,
                on_znode=on_znode,
            )
            session.start()
            opened.callback(session.close)
            return session

        yield open_one


@pytest.fixture
def session(open_session: OpenSession) -> ZkSession:
    session = open_session()
    ensure_roots(session)
    return session


@pytest.fixture
def store(session: ZkSession) -> ZkStore:
    return ZkStore(session)


@pytest.fixture
def term(store: ZkStore) -> ControllerTerm:
    term = store.election.elect_controller(0, now_ms=1)
    assert term is not None
    return term
