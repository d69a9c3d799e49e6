import queue
from collections.abc import Callable
from uuid import uuid4

import pytest
from kazoo.protocol.connection import _SESSION_EXPIRED

from cut_proxy import CutProxy
from odradek.broker.zk.registration import ensure_roots
from odradek.broker.zk.session import SessionEvent, ZkSession
from odradek.broker.zk.store import ControllerMoved, ZkStore
from odradek.model.topology import ControllerTerm, LeaderAndIsr, ReplicaAssignment, TopicAssignment, TopicPartition

OpenSession = Callable[..., ZkSession]
WAIT = 60


def _await(events: "queue.Queue[SessionEvent]", wanted: SessionEvent) -> None:
    while events.get(timeout=WAIT) is not wanted:
        continue


def test_who_resigns_leaves_the_seat_to_the_next(open_session: OpenSession) -> None:
    session = open_session()
    ensure_roots(session)
    first, second = ZkStore(session), ZkStore(open_session())
    term = first.election.elect_controller(0, now_ms=1)
    assert term is not None
    first.election.resign_controller(term)
    assert second.election.current_controller() is None
    assert second.election.elect_controller(1, now_ms=2) == ControllerTerm(2, 2)
    first.election.resign_controller(term)
    assert second.election.current_controller() == 1, "an old controller removes no one else"


def test_the_seat_of_an_own_earlier_session_is_taken_anew(open_session: OpenSession) -> None:
    events = queue.Queue[SessionEvent]()
    session = open_session(events.put, 60_000)
    ensure_roots(session)
    store = ZkStore(session)
    assert store.election.elect_controller(0, now_ms=1) == ControllerTerm(1, 1)
    # only the client believes that its session is over, so that its node stays
    session._client._call(_SESSION_EXPIRED, session._client.handler.async_result())
    _await(events, SessionEvent.SESSION_RENEWED)
    assert store.election.elect_controller(0, now_ms=2) == ControllerTerm(2, 2)
    assert session.call(lambda zk: zk.exists_async("/controller")).ephemeralOwner == session.session_id


def test_another_brokers_seat_is_left_alone(open_session: OpenSession) -> None:
    session = open_session()
    ensure_roots(session)
    assert ZkStore(session).election.elect_controller(0, now_ms=1) is not None
    assert ZkStore(open_session()).election.elect_controller(1, now_ms=2) is None
    assert ZkStore(session).election.current_controller() == 0


def test_an_expired_controller_is_replaced_and_fenced(open_session: OpenSession, proxy: CutProxy) -> None:
    events, fired = queue.Queue[SessionEvent](), queue.Queue[str]()
    cut_off = open_session(events.put, 3000, through=proxy)
    ensure_roots(cut_off)
    zombie = ZkStore(cut_off, until_available=True)
    term = zombie.election.elect_controller(0, now_ms=1)
    assert term is not None
    watching = open_session(on_znode=fired.put)
    successor = ZkStore(watching)
    proxy.cut()
    if watching.watch_nodes(["/controller"])["/controller"]:
        assert fired.get(timeout=WAIT) == "/controller", "its session expired, and its seat is free"
    assert successor.election.elect_controller(1, now_ms=2) == ControllerTerm(2, 2)
    proxy.mend()
    _await(events, SessionEvent.SESSION_LOST)
    _await(events, SessionEvent.SESSION_RENEWED)
    with pytest.raises(ControllerMoved):
        zombie.requests.write_reassignments({TopicPartition("orders", 0): (1,)}, term)
    zombie.election.resign_controller(term)
    assert zombie.election.elect_controller(0, now_ms=3) is None
    assert successor.election.current_controller() == 1


@pytest.mark.parametrize("content", [b"", b"{", b"12x", None])
def test_a_corrupt_epoch_is_set_above_all_that_were_seen(open_session: OpenSession, content: bytes | None) -> None:
    session = open_session()
    ensure_roots(session)
    store = ZkStore(session)
    term = store.election.elect_controller(0, now_ms=1)
    assert term is not None
    tp = TopicPartition("orders", 0)
    store.topics.create_topic(TopicAssignment("orders", uuid4(), {0: ReplicaAssignment((0,))}), {})
    store.partition_states.create_partition_states({tp: LeaderAndIsr(0, 0, (0,), controller_epoch=40)}, term)
    store.election.resign_controller(term)
    session.call(lambda zk: zk.set_async("/controller_epoch", content))
    assert store.election.elect_controller(0, now_ms=2) == ControllerTerm(41, 3)
    assert session.call(lambda zk: zk.get_async("/controller_epoch"))[0] == b"41"


def test_an_epoch_that_was_deleted_goes_on_above_the_partitions(open_session: OpenSession) -> None:
    session = open_session()
    ensure_roots(session)
    store = ZkStore(session)
    term = store.election.elect_controller(0, now_ms=1)
    assert term is not None
    store.topics.create_topic(TopicAssignment("orders", uuid4(), {0: ReplicaAssignment((0,))}), {})
    store.partition_states.create_partition_states({TopicPartition("orders", 0): LeaderAndIsr(0, 0, (0,), 7)}, term)
    session.call(lambda zk: zk.delete_async("/controller"))
    session.call(lambda zk: zk.delete_async("/controller_epoch"))
    assert store.election.elect_controller(0, now_ms=2) == ControllerTerm(8, 1)
