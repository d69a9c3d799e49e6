from collections.abc import Callable, Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest

from odradek.zk.session import SessionEvent, ZkSession

OpenSession = Callable[..., ZkSession]


@pytest.fixture
def open_session(zookeeper: str) -> Iterator[OpenSession]:
    """Opens sessions that share a path of this test's own; all are closed in the end."""
    root = f"/{uuid4()}"
    with ExitStack() as opened:

        def open_one(
            listener: Callable[[SessionEvent], None] = lambda event: None, session_timeout_ms: int = 4000
        ) -> ZkSession:
            session = ZkSession(
                zookeeper + root,
                session_timeout_ms=session_timeout_ms,
                connection_timeout_ms=10_000,
                listener=listener,
            )
            session.start()
            opened.callback(session.close)
            return session

        yield open_one
