import queue
from collections.abc import Callable
from itertools import count

import pytest
from kazoo.protocol.connection import _SESSION_EXPIRED

from odradek.base.clock import SystemClock
from odradek.base.errors import FatalError
from odradek.broker.zk.registration import BrokerRegistrar, ensure_roots, generate_broker_id, get_or_create_cluster_id
from odradek.broker.zk.session import SessionEvent, ZkSession
from odradek.broker.zk.store import ZkStore
from odradek.broker.zk.znodes import PERSISTENT_ROOTS
from odradek.model.topology import Broker, Endpoint
from odradek.model.uuid_text import uuid_from_text

OpenSession = Callable[..., ZkSession]
BROKER = Broker(7, (Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092),), "rack-a")


class HurriedClock(SystemClock):
    """Every look at it takes ten seconds."""

    def __init__(self) -> None:
        self._looks = count(0, 10_000)

    def monotonic_ms(self) -> int:
        return next(self._looks)


def test_roots_are_created_once_and_left_alone(open_session: OpenSession) -> None:
    session = open_session()
    for _ in range(2):
        ensure_roots(session)
    found = session.pipeline([lambda zk, path=path: zk.get_async(path) for path in PERSISTENT_ROOTS])
    assert [(content, stat.version) for content, stat in found] == [(None, 0)] * len(PERSISTENT_ROOTS)


def test_every_broker_sees_the_same_cluster_id(open_session: OpenSession) -> None:
    ids = {get_or_create_cluster_id(open_session()) for _ in range(3)}
    (cluster_id,) = ids
    assert len(cluster_id) == 22
    assert uuid_from_text(cluster_id).version == 4


def test_generated_ids_are_above_the_reserved_and_differ(open_session: OpenSession) -> None:
    assert [generate_broker_id(open_session(), 1000) for _ in range(3)] == [1001, 1002, 1003]


def test_the_epoch_is_the_nodes_czxid(open_session: OpenSession) -> None:
    session = open_session()
    ensure_roots(session)
    registered = BrokerRegistrar(session).register(BROKER)
    stat = session.call(lambda zk: zk.exists_async("/brokers/ids/7"))
    assert stat.ephemeralOwner == session.session_id
    assert registered.epoch == stat.czxid > 0
    assert ZkStore(session).brokers.load_brokers() == {7: registered}
    assert BrokerRegistrar(session).register(BROKER) == registered, "a repeated request finds its own node"


def test_a_second_broker_with_a_live_id_is_refused(open_session: OpenSession) -> None:
    first, second = open_session(), open_session()
    ensure_roots(first)
    registered = BrokerRegistrar(first).register(BROKER)
    with pytest.raises(FatalError, match=r"a broker with id 7 is already registered at 127\.0\.0\.1:9092"):
        BrokerRegistrar(second, HurriedClock()).register(BROKER)
    assert ZkStore(second).brokers.load_brokers() == {7: registered}


def test_a_lost_session_registers_again_with_a_higher_epoch(open_session: OpenSession) -> None:
    events: queue.Queue[SessionEvent] = queue.Queue()
    session = open_session(events.put)
    ensure_roots(session)
    registrar = BrokerRegistrar(session)
    before = registrar.register(BROKER)
    # Only the client believes that its session is over, so the server keeps the old node: the registrar removes it.
    session._client._call(_SESSION_EXPIRED, session._client.handler.async_result())
    while events.get(timeout=60) is not SessionEvent.SESSION_RENEWED:
        continue
    after = registrar.register(BROKER)
    assert after.epoch > before.epoch
    assert session.call(lambda zk: zk.exists_async("/brokers/ids/7")).ephemeralOwner == session.session_id
