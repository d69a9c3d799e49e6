from collections.abc import Callable

import pytest

from odradek.broker.zk.session import ZkSession
from odradek.broker.zk.store import ControllerMoved, ZkStore
from odradek.model.topology import ControllerTerm, TopicPartition

OpenSession = Callable[..., ZkSession]
FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


def _content(session: ZkSession, path: str) -> bytes:
    return bytes(session.call(lambda zk: zk.get_async(path))[0])


def test_a_reassignment_is_written_down_until_it_is_done(
    session: ZkSession, store: ZkStore, term: ControllerTerm
) -> None:
    assert store.requests.read_reassignments() == {}
    asked = {FIRST: (1, 2), SECOND: (2, 0)}
    store.requests.write_reassignments(asked, term)
    # as Apache Kafka 3.9 writes it
    assert _content(session, "/admin/reassign_partitions") == (
        b'{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2]},'
        b'{"topic":"orders","partition":1,"replicas":[2,0]}]}'
    )
    assert store.requests.read_reassignments() == asked
    store.requests.write_reassignments({SECOND: (2, 0)}, term)
    assert store.requests.read_reassignments() == {SECOND: (2, 0)}
    for _ in range(2):
        store.requests.write_reassignments({}, term)
    assert session.call(lambda zk: zk.exists_async("/admin/reassign_partitions")) is None


def test_a_preferred_election_is_asked_for_and_done(session: ZkSession, store: ZkStore, term: ControllerTerm) -> None:
    assert store.requests.read_preferred_elections() == set()
    asked = b'{"version":1,"partitions":[{"topic":"orders","partition":0},{"topic":"orders","partition":1}]}'
    session.call(lambda zk: zk.create_async("/admin/preferred_replica_election", asked))
    assert store.requests.read_preferred_elections() == {FIRST, SECOND}
    for _ in range(2):
        store.requests.drop_preferred_elections(term)
    assert store.requests.read_preferred_elections() == set()


def test_isr_changes_are_told_read_and_dropped(session: ZkSession, store: ZkStore, term: ControllerTerm) -> None:
    store.requests.notify_isr_change([FIRST])
    store.requests.notify_isr_change([FIRST, SECOND])
    names, told = store.requests.read_isr_notifications()
    assert (names, told) == (["isr_change_0000000000", "isr_change_0000000001"], {FIRST, SECOND})
    assert _content(session, f"/isr_change_notification/{names[0]}") == (
        b'{"version":1,"partitions":[{"topic":"orders","partition":0}]}'
    )
    store.requests.notify_isr_change([SECOND])
    store.requests.drop_isr_notifications(names, term)
    assert store.requests.read_isr_notifications() == (["isr_change_0000000002"], {SECOND}), (
        "only what was read is dropped"
    )


def test_failed_directories_are_told_read_and_dropped(session: ZkSession, store: ZkStore, term: ControllerTerm) -> None:
    store.requests.notify_log_dir_failure(2)
    names, brokers = store.requests.read_log_dir_notifications()
    assert (names, brokers) == (["log_dir_event_0000000000"], {2})
    assert _content(session, f"/log_dir_event_notification/{names[0]}") == b'{"version":1,"broker":2,"event":1}'
    store.requests.drop_log_dir_notifications(names, term)
    assert store.requests.read_log_dir_notifications() == ([], set())


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"partitions":[{"topic":1}]}', b'{"version":1}'])
def test_requests_that_nobody_understands_ask_for_nothing(session: ZkSession, store: ZkStore, content: bytes) -> None:
    for path in ("/admin/reassign_partitions", "/admin/preferred_replica_election"):
        session.call(lambda zk, path=path: zk.create_async(path, content))
    assert store.requests.read_reassignments() == {}
    assert store.requests.read_preferred_elections() == set()


def test_a_replaced_controller_drops_nothing(
    open_session: OpenSession, session: ZkSession, store: ZkStore, term: ControllerTerm
) -> None:
    store.topics.mark_for_deletion("orders")
    store.requests.notify_isr_change([FIRST])
    store.election.resign_controller(term)
    assert ZkStore(open_session()).election.elect_controller(1, now_ms=2) is not None
    names, _ = store.requests.read_isr_notifications()
    for drop in (
        lambda: store.requests.drop_isr_notifications(names, term),
        lambda: store.topics.drop_deletion_marks(["orders"], term),
        lambda: store.requests.drop_preferred_elections(term),
    ):
        with pytest.raises(ControllerMoved):
            drop()
    assert store.topics.load_topics_to_delete() == ["orders"]
    assert store.requests.read_isr_notifications() == (names, {FIRST})
