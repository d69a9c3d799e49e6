"""A group whose coordinator dies, and moves on while it lives: members keep their parts, positions are never lost."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.state.state_log import java_hash
from odradek.client.broker_client import ConnectionFailed
from odradek.model.topic_names import OFFSETS_TOPIC
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from odradek.protocol.schema import Request
from waiting import eventually

from .own_cluster import PATIENCE_S, OwnCluster, running_cluster

pytestmark = pytest.mark.timeout(300)

ALL = (0, 1, 2)
PARTITIONS = 5
GROUP = "failing-over"
KEPT_IN = abs(java_hash(GROUP)) % PARTITIONS
ASK_AGAIN = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}


class Member:
    """Asks whoever coordinates the group, and again when it is told to."""

    def __init__(self, cluster: OwnCluster) -> None:
        self.cluster = cluster
        self.id = ""
        self.generation = -1

    def ask(self, request: Request, version: int, error_of: Callable[[Any], int] = lambda each: each.error_code) -> Any:
        answers: list[Any] = []

        def answered() -> bool:
            try:
                with self.cluster.client(max(self.cluster.leader(OFFSETS_TOPIC, KEPT_IN), 0)) as client:
                    answer = client.send(request, version)
            except ConnectionFailed:
                return False
            answers.append(answer)
            return error_of(answer) not in ASK_AGAIN

        eventually(answered, PATIENCE_S)
        return answers[-1]

    def join(self) -> None:
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=120_000,
            rebalance_timeout_ms=120_000,
            member_id=self.id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        answer = self.ask(request, 3)
        if answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.id = ""  # it was known only to a coordinator that died before it wrote anything
            self.join()
            return
        assert answer.error_code == ErrorCode.NONE
        self.id, self.generation = answer.member_id, answer.generation_id

    def sync(self, **parts: bytes) -> bytes:
        assignments = [SyncGroupRequestAssignment(member_id=id, assignment=part) for id, part in parts.items()]
        request = SyncGroupRequest(
            group_id=GROUP, generation_id=self.generation, member_id=self.id, assignments=assignments
        )
        answer = self.ask(request, 3)
        assert answer.error_code == ErrorCode.NONE
        assignment: bytes = answer.assignment
        return assignment

    def heartbeat(self) -> int:
        request = HeartbeatRequest(group_id=GROUP, generation_id=self.generation, member_id=self.id)
        error: int = self.ask(request, 3).error_code
        return error

    def commit(self, offset: int) -> None:
        position = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=self.generation,
            member_id=self.id,
            topics=[OffsetCommitRequestTopic(name="orders", partitions=[position])],
        )
        answer = self.ask(request, 7, lambda each: each.topics[0].partitions[0].error_code)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE

    def committed(self) -> int:
        request = OffsetFetchRequest(
            group_id=GROUP, topics=[OffsetFetchRequestTopic(name="orders", partition_indexes=[0])], require_stable=True
        )
        answer = self.ask(request, 7, lambda each: each.error_code or each.topics[0].partitions[0].error_code)
        (position,) = answer.topics[0].partitions
        assert (answer.error_code, position.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
        offset: int = position.committed_offset
        return offset


@pytest.fixture
def cluster(tmp_path: Path, zookeeper: str) -> Iterator[OwnCluster]:
    with running_cluster(tmp_path, zookeeper, group_initial_rebalance_delay_ms="0") as cluster:
        cluster.create_topic("orders", ALL)
        with cluster.client(0) as client:
            asked = FindCoordinatorRequest(key=GROUP)
            eventually(lambda: client.send(asked, 3).error_code == ErrorCode.NONE, PATIENCE_S)
        cluster.await_isr(OFFSETS_TOPIC, ALL, KEPT_IN)
        yield cluster


def test_the_coordinator_dies_and_returns(cluster: OwnCluster) -> None:
    first, second = Member(cluster), Member(cluster)
    first.join()
    assert first.sync(**{first.id: b"all"}) == b"all"
    for offset in range(20):
        first.commit(offset)

    died = cluster.leader(OFFSETS_TOPIC, KEPT_IN)
    with ThreadPoolExecutor(2) as joining:
        waiting = joining.submit(second.join)
        eventually(lambda: first.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS, PATIENCE_S)
        cluster.kill(died)  # while the second waits to join, which nobody else knows
        cluster.await_leader_other_than(died, OFFSETS_TOPIC, KEPT_IN)
        assert first.committed() == 19
        eventually(lambda: first.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS, PATIENCE_S)
        again = joining.submit(first.join)
        waiting.result(PATIENCE_S)
        again.result(PATIENCE_S)
    assert first.generation == second.generation == 2
    assert first.sync(**{first.id: b"one", second.id: b"two"}) == b"one"
    assert second.sync() == b"two"
    first.commit(20)

    cluster.restart(died)
    cluster.await_isr(OFFSETS_TOPIC, ALL, KEPT_IN)
    with cluster.client(cluster.controller()) as client:
        elected = client.send(
            ElectLeadersRequest(topic_partitions=[TopicPartitions(topic=OFFSETS_TOPIC, partitions=[KEPT_IN])])
        )
    assert elected.error_code == ErrorCode.NONE
    preferred = cluster.store.topics.load_topics([OFFSETS_TOPIC])[OFFSETS_TOPIC].partitions[KEPT_IN].replicas[0]
    eventually(lambda: cluster.leader(OFFSETS_TOPIC, KEPT_IN) == preferred, PATIENCE_S)
    assert first.committed() == 20
    assert (first.heartbeat(), second.heartbeat()) == (ErrorCode.NONE, ErrorCode.NONE)
    assert second.sync() == b"two", "its part is what it was"
    second.commit(21)
    assert first.committed() == 21
