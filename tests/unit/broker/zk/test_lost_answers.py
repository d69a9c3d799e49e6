"""Writes that ZooKeeper carried out and whose answers were lost: sent again, they must be recognised as done."""

import queue
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from cut_proxy import CutProxy
from odradek.broker.zk.registration import ensure_roots
from odradek.broker.zk.session import SessionEvent, ZkSession
from odradek.broker.zk.store import ZkStore
from odradek.broker.zk.stores.access import ZnodeAccess
from odradek.broker.zk.znodes.acls import ACL_ROOTS
from odradek.model.acls import AclEntry, AclOperation, PatternType, PermissionType, ResourcePattern, ResourceType
from odradek.model.topology import ControllerTerm, LeaderAndIsr, ReplicaAssignment, TopicAssignment, TopicPartition

OpenSession = Callable[..., ZkSession]
WAIT = 60
TP = TopicPartition("orders", 0)
STATE = LeaderAndIsr(leader=0, leader_epoch=0, isr=(0, 1), controller_epoch=1)
PATTERN = ResourcePattern(ResourceType.TOPIC, "orders", PatternType.PREFIXED)
ALLOWANCE, DENIAL = (
    AclEntry("User:alice", "*", AclOperation.READ, permission)
    for permission in (PermissionType.ALLOW, PermissionType.DENY)
)
ORDERS = TopicAssignment("orders", uuid4(), {0: ReplicaAssignment((0, 1))})


class Fragile:
    """A store behind a proxy, and one that sees what happened."""

    def __init__(self, open_session: OpenSession, proxy: CutProxy) -> None:
        self.events: queue.Queue[SessionEvent] = queue.Queue()
        self.session = open_session(self.events.put, 60_000, through=proxy)
        ensure_roots(self.session)
        self.store = ZkStore(self.session)
        self.witness = ZkStore(open_session())
        self._proxy = proxy

    def without_answer(self, write: Callable[[], Any], done: Callable[[], bool]) -> Any:
        """Runs the write so that its answer is lost; the connection breaks when the witness sees it done."""
        self._proxy.swallow_answers()
        with ThreadPoolExecutor(1) as pool:
            pending = pool.submit(write)
            deadline = time.monotonic() + WAIT
            while not done():
                assert time.monotonic() < deadline, "the write did not arrive"
                time.sleep(0.01)
            self._proxy.cut()
            assert self.events.get(timeout=WAIT) is SessionEvent.CONNECTION_LOST
            self._proxy.mend()
            return pending.result(timeout=WAIT)


@pytest.fixture
def fragile(open_session: OpenSession, proxy: CutProxy) -> Fragile:
    return Fragile(open_session, proxy)


@pytest.fixture
def term(fragile: Fragile) -> ControllerTerm:
    term = fragile.store.election.elect_controller(0, now_ms=1)
    assert term is not None
    return term


def test_an_election_that_was_won_unheard(fragile: Fragile) -> None:
    store, witness = fragile.store, fragile.witness
    assert store.election.elect_controller(0, now_ms=1) == ControllerTerm(1, 1)
    store.election.resign_controller(ControllerTerm(1, 1))
    # two requests: the epoch is read, then /controller created. Only the second one's answer may be lost.
    epoch, version = store.election._next_epoch()
    won = fragile.without_answer(
        lambda: store.election._create_controller_node(0, 1, epoch, version),
        lambda: witness.election.current_controller() == 0,
    )
    assert won


def test_a_topic_that_was_created_unheard(fragile: Fragile) -> None:
    fragile.without_answer(
        lambda: fragile.store.topics.create_topic(ORDERS, {"a": "1"}),
        lambda: "orders" in fragile.witness.topics.load_topics(),
    )
    assert fragile.witness.topics.load_topics() == {"orders": ORDERS}
    assert fragile.witness.configs.load_config("topics", "orders") == {"a": "1"}


def test_states_that_were_written_unheard(fragile: Fragile, term: ControllerTerm) -> None:
    store, witness = fragile.store, fragile.witness
    store.topics.create_topic(ORDERS, {})
    store.partition_states.create_partition_states({TP: STATE}, term)
    shrunk = replace(STATE, leader_epoch=1, isr=(0,))
    written = fragile.without_answer(
        lambda: store.partition_states.update_partition_states({TP: shrunk}, term),
        lambda: witness.partition_states.load_partition_states([TP])[TP].isr == (0,),
    )
    assert written == {TP: replace(shrunk, zk_version=1)}


def test_an_isr_that_its_leader_wrote_unheard(fragile: Fragile, term: ControllerTerm) -> None:
    store, witness = fragile.store, fragile.witness
    store.topics.create_topic(ORDERS, {})
    store.partition_states.create_partition_states({TP: STATE}, term)
    shrunk = replace(STATE, isr=(0,))
    version = fragile.without_answer(
        lambda: store.partition_states.update_partition_state_as_leader(TP, shrunk),
        lambda: witness.partition_states.load_partition_states([TP])[TP].isr == (0,),
    )
    assert version == 1


def test_partitions_that_were_added_unheard(fragile: Fragile, term: ControllerTerm) -> None:
    store, witness = fragile.store, fragile.witness
    store.topics.create_topic(ORDERS, {})
    access = store.topics._access
    node = access.read("/brokers/topics/orders")
    assert node is not None
    grown = replace(ORDERS, partitions={**ORDERS.partitions, 1: ReplicaAssignment((1, 0))})
    reads = iter([node])
    # the first read was answered; what is lost is the answer to the write
    access.read = lambda path: next(reads, None) or ZnodeAccess.read(access, path)  # type: ignore[method-assign]
    result = fragile.without_answer(
        lambda: store.topics.add_partitions("orders", {1: ReplicaAssignment((1, 0))}, term),
        lambda: witness.topics.load_topics()["orders"] == grown,
    )
    assert result == grown


@pytest.mark.parametrize("entries", [frozenset(), frozenset([DENIAL])], ids=["removed", "denied"])
def test_acls_that_were_changed_unheard_are_announced(fragile: Fragile, entries: frozenset[AclEntry]) -> None:
    """The other brokers would allow for ever what was taken away: whoever asks again finds nothing to change."""
    store, witness = fragile.store.acls, fragile.witness.acls
    fragile.session.ensure_paths(ACL_ROOTS)
    assert store.write_acls(PATTERN, frozenset([ALLOWANCE]), None)
    _, seen = witness.load_acl_changes({})
    fragile.without_answer(
        lambda: store.write_acls(PATTERN, entries, 0),
        lambda: witness.load_acls([PATTERN])[PATTERN].entries == entries,
    )
    assert witness.load_acl_changes(seen)[0] == [PATTERN]
