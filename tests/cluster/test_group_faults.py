"""A coordinator that dies while parts are handed out, or while a position is on its way; and one that is moved.

Nobody has a part that is another's; no position that was acknowledged is lost or goes back.
"""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from odradek.apps.lab.bench.many_members import ManyMembers
from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.model.topic_names import OFFSETS_TOPIC
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from waiting import eventually

from .conftest import unused_name
from .own_cluster import PATIENCE_S, OwnCluster, running_cluster
from .test_group_failover import ALL, GROUP, KEPT_IN, PARTITIONS, Member

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, zookeeper: str) -> Iterator[OwnCluster]:
    directory: Path = tmp_path_factory.mktemp("group-faults")
    settings = {
        "group_initial_rebalance_delay_ms": "0",
        "offsets_topic_num_partitions": str(PARTITIONS),
        "max_connections_per_ip": "5000",
    }
    with running_cluster(directory, zookeeper, **settings) as cluster:
        cluster.create_topic("orders", ALL)
        with cluster.client(0) as client:
            asked = FindCoordinatorRequest(key=GROUP)
            eventually(lambda: client.send(asked, 3).error_code == ErrorCode.NONE, PATIENCE_S)
        yield cluster


@pytest.fixture
def cluster(shared: OwnCluster) -> Iterator[OwnCluster]:
    yield shared
    shared.mend()


def coordinator(cluster: OwnCluster) -> int:
    cluster.await_isr(OFFSETS_TOPIC, ALL, KEPT_IN)
    return cluster.leader(OFFSETS_TOPIC, KEPT_IN)


def test_the_coordinator_dies_while_parts_are_handed_out(cluster: OwnCluster) -> None:
    died = coordinator(cluster)
    first, second = Member(cluster), Member(cluster)
    first.join()
    with ThreadPoolExecutor(2) as working:
        waiting = working.submit(second.join)
        eventually(lambda: first.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS, PATIENCE_S)
        first.join()
        waiting.result(PATIENCE_S)
        handed_out = working.submit(second.sync)  # the leader has not assigned
        time.sleep(0.5)
        cluster.kill(died)
        cluster.await_leader_other_than(died, OFFSETS_TOPIC, KEPT_IN)
        with pytest.raises(AssertionError):  # whoever takes over has never heard of the generation
            handed_out.result(PATIENCE_S)
        assert first.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
        again = [working.submit(member.join) for member in (first, second)]
        eventually(lambda: any(each.done() for each in again), PATIENCE_S)
        while not all(each.done() for each in again):  # one of them was first, and is told of the other
            done = first if again[0].done() else second
            if done.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS:
                done.join()
    assert first.generation == second.generation
    parts = {first.id: b"one", second.id: b"two"}
    with ThreadPoolExecutor(2) as syncing:
        got = list(syncing.map(lambda member: member.sync(**parts), (first, second)))
    assert got == [b"one", b"two"]
    cluster.restart(died)
    leave(first, second)


def test_the_coordinator_dies_while_a_position_is_on_its_way(cluster: OwnCluster) -> None:
    died = coordinator(cluster)
    member = Member(cluster)
    member.join()
    member.sync(**{member.id: b"all"})
    member.commit(10)
    others = [broker for broker in ALL if broker != died]
    for broker in others:
        cluster.freeze(broker)  # so that it is written, and not replicated
    with ThreadPoolExecutor(1) as committing:
        on_its_way = committing.submit(member.commit, 11)
        time.sleep(0.5)
        assert not on_its_way.done()
        cluster.kill(died)
        for broker in others:
            cluster.thaw(broker)
        cluster.await_leader_other_than(died, OFFSETS_TOPIC, KEPT_IN)
        assert member.committed() in (10, 11)
        on_its_way.result(PATIENCE_S)  # asked again, as a client does
    assert member.committed() == 11
    assert member.heartbeat() == ErrorCode.NONE
    cluster.restart(died)
    leave(member)


def test_the_groups_topic_is_moved_while_they_work(cluster: OwnCluster) -> None:
    """Its leader leaves the replicas and comes back, twice; the member goes on in its generation."""
    member = Member(cluster)
    coordinator(cluster)
    member.join()
    member.sync(**{member.id: b"all"})
    generation, committed, over = member.generation, [0], threading.Event()

    def work() -> None:
        while not over.is_set():
            member.commit(committed[-1] + 1)
            committed.append(committed[-1] + 1)
            assert member.committed() == committed[-1]
            assert member.heartbeat() == ErrorCode.NONE

    with ThreadPoolExecutor(1) as working:
        worker = working.submit(work)
        try:
            for _ in range(2):
                led = coordinator(cluster)
                move(cluster, [broker for broker in ALL if broker != led])
                cluster.await_leader_other_than(led, OFFSETS_TOPIC, KEPT_IN)
                move(cluster, [led, *(broker for broker in ALL if broker != led)])
                known = len(committed)
                eventually(lambda known=known: worker.done() or len(committed) > known + 5, PATIENCE_S)
        finally:
            over.set()
        worker.result(PATIENCE_S)
    assert (member.committed(), member.generation) == (committed[-1], generation)
    leave(member)


def move(cluster: OwnCluster, replicas: list[int]) -> None:
    partition = ReassignablePartition(partition_index=KEPT_IN, replicas=replicas)
    topics = [ReassignableTopic(name=OFFSETS_TOPIC, partitions=[partition])]

    def accepted() -> bool:
        try:
            with cluster.client(cluster.controller()) as client:
                answer = client.send(AlterPartitionReassignmentsRequest(topics=topics))
        except ConnectionFailed:
            return False
        return answer.responses[0].partitions[0].error_code == ErrorCode.NONE

    def moved() -> bool:
        assigned = cluster.store.topics.load_topics([OFFSETS_TOPIC])[OFFSETS_TOPIC].partitions[KEPT_IN]
        return list(assigned.replicas) == replicas and not (assigned.adding or assigned.removing)

    eventually(accepted, PATIENCE_S)
    eventually(moved, PATIENCE_S)


def leave(*members: Member) -> None:
    leaving = [MemberIdentity(member_id=member.id) for member in members]
    answer = members[0].ask(LeaveGroupRequest(group_id=GROUP, members=leaving), 4)
    assert [each.error_code for each in answer.members] == [ErrorCode.NONE] * len(members)


def test_a_thousand_join_at_once(cluster: OwnCluster) -> None:
    group = unused_name()
    with cluster.client(0) as asked:
        asking = FindCoordinatorRequest(key=group)
        eventually(lambda: asked.send(asking, 3).error_code == ErrorCode.NONE, PATIENCE_S)
        found = asked.send(asking, 3)
    with BrokerClient(found.host, found.port) as client:
        with ManyMembers((found.host, found.port), group, 1_000) as everybody:
            everybody.join()
            everybody.beat()
            (described,) = client.send(DescribeGroupsRequest(groups=[group])).groups
            assert (described.group_state, len(described.members)) == ("Stable", 1_000)
            everybody.leave()
        (described,) = client.send(DescribeGroupsRequest(groups=[group])).groups
        assert (described.group_state, len(described.members)) == ("Empty", 0)
