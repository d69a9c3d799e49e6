"""Members that do what they shouldn't, in groups that live: each gets Apache Kafka's own answer, and costs nobody else
anything.

Each story is told to Odradek and to Kafka in the same words, so that nobody has to believe it.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from apache_kafka import KafkaPeer
from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from waiting import eventually

from .conftest import unused_name
from .test_group_versions import prepare

WAIT_S = 60
SESSION_MS = 30_000
MALFORMED = b"\x00\x09\xff\xff\xff\xff no assignment at all"

pytestmark = pytest.mark.timeout(180)


class Group:
    """A group of one test, and the connections that its members have."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.name = unused_name()
        self.topic = topic
        self._address = bootstrap.rpartition(":")
        self._stack = ExitStack()
        self._pool = self._stack.enter_context(ThreadPoolExecutor(8))

    def close(self) -> None:
        self._stack.close()

    def member(self, instance_id: str | None = None, rebalance_ms: int = SESSION_MS) -> "Member":
        client = self._stack.enter_context(BrokerClient(self._address[0], int(self._address[2]), client_id="member"))
        return Member(self, client, self._pool, instance_id, rebalance_ms)


class Member:
    def __init__(
        self,
        group: Group,
        client: BrokerClient,
        pool: ThreadPoolExecutor,
        instance_id: str | None,
        rebalance_ms: int,
    ) -> None:
        self.id = ""
        self.generation = -1
        self.client = client
        self._group = group
        self._pool = pool
        self._instance_id = instance_id
        self._rebalance_ms = rebalance_ms

    def ask_to_join(self, *protocols: str, protocol_type: str = "consumer") -> JoinGroupResponse:
        request = JoinGroupRequest(
            group_id=self._group.name,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=self._rebalance_ms,
            member_id=self.id,
            group_instance_id=self._instance_id,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=b"") for name in protocols or ("range",)],
        )
        answer = self.client.send(request, 9)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.id = answer.member_id
            return self.ask_to_join(*protocols, protocol_type=protocol_type)
        return answer

    def join(self) -> None:
        answer = self.ask_to_join()
        assert ErrorCode(answer.error_code) is ErrorCode.NONE
        self.id, self.generation = answer.member_id, answer.generation_id

    def joining(self) -> "Future[None]":
        return self._pool.submit(self.join)

    def ask_to_sync(self, protocol: str = "range", generation: int | None = None, **parts: bytes) -> SyncGroupResponse:
        request = SyncGroupRequest(
            group_id=self._group.name,
            generation_id=self.generation if generation is None else generation,
            member_id=self.id,
            group_instance_id=self._instance_id,
            protocol_type="consumer",
            protocol_name=protocol,
            assignments=[SyncGroupRequestAssignment(member_id=id, assignment=part) for id, part in parts.items()],
        )
        return self.client.send(request, 5)

    def sync(self, **parts: bytes) -> bytes:
        answer = self.ask_to_sync(**parts)
        assert ErrorCode(answer.error_code) is ErrorCode.NONE
        return bytes(answer.assignment)

    def syncing(self) -> "Future[SyncGroupResponse]":
        return self._pool.submit(self.ask_to_sync)

    def heartbeat(self, generation: int | None = None) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=self._group.name,
            generation_id=self.generation if generation is None else generation,
            member_id=self.id,
            group_instance_id=self._instance_id,
        )
        return ErrorCode(self.client.send(request, 4).error_code)

    def commit(self, generation: int | None = None, metadata: str = "") -> ErrorCode:
        position = OffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata=metadata)
        request = OffsetCommitRequest(
            group_id=self._group.name,
            generation_id_or_member_epoch=self.generation if generation is None else generation,
            member_id=self.id,
            group_instance_id=self._instance_id,
            topics=[OffsetCommitRequestTopic(name=self._group.topic, partitions=[position])],
        )
        return ErrorCode(self.client.send(request, 8).topics[0].partitions[0].error_code)

    def leave(self) -> ErrorCode:
        identity = MemberIdentity(member_id=self.id, group_instance_id=self._instance_id)
        answer = self.client.send(LeaveGroupRequest(group_id=self._group.name, members=[identity]), 5)
        return ErrorCode(answer.error_code or answer.members[0].error_code)


@pytest.fixture(scope="module", params=["Odradek", "Apache Kafka"])
def place(request: pytest.FixtureRequest, kafka_peer: KafkaPeer) -> tuple[str, str]:
    """Cluster of the story, and a topic there."""
    ours: str = request.getfixturevalue("bootstrap")
    bootstrap = ours if request.param == "Odradek" else kafka_peer.bootstrap_servers
    return bootstrap, prepare(bootstrap)


@pytest.fixture
def group(place: tuple[str, str]) -> Iterator[Group]:
    group = Group(*place)
    yield group
    group.close()


def test_what_is_refused_while_a_group_lives(group: Group) -> None:
    owner = group.member()
    owner.join()
    assert owner.sync(**{owner.id: b"all"}) == b"all"

    before, after = owner.generation - 1, owner.generation + 1
    assert [owner.heartbeat(before), owner.heartbeat(after)] == [ErrorCode.ILLEGAL_GENERATION] * 2
    assert [owner.commit(before), owner.commit(after)] == [ErrorCode.ILLEGAL_GENERATION] * 2
    assert owner.ask_to_sync(generation=before).error_code == ErrorCode.ILLEGAL_GENERATION
    assert owner.ask_to_sync(protocol="roundrobin").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert owner.commit(metadata="x" * 4097) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert owner.commit(metadata="x" * 4096) is ErrorCode.NONE

    stranger = group.member()
    assert stranger.ask_to_join("roundrobin").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert stranger.ask_to_join(protocol_type="connect").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    stranger.id, stranger.generation = "nobody", owner.generation
    assert stranger.ask_to_join().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert stranger.ask_to_sync().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert stranger.heartbeat() is stranger.commit() is stranger.leave() is ErrorCode.UNKNOWN_MEMBER_ID
    stranger.id = ""
    assert stranger.commit(generation=-1) is ErrorCode.UNKNOWN_MEMBER_ID  # nobody commits past the members

    (refused,) = stranger.client.send(DeleteGroupsRequest(groups_names=[group.name]), 2).results
    assert refused.error_code == ErrorCode.NON_EMPTY_GROUP
    assert owner.heartbeat() is ErrorCode.NONE, "nothing of all that has moved the group"
    assert owner.leave() is ErrorCode.NONE
    assert owner.leave() is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_assignment_that_makes_no_sense_is_nobodys_business_but_the_members(group: Group) -> None:
    owner = group.member()
    owner.join()
    assert owner.sync(**{owner.id: MALFORMED, "nobody": b"a part for somebody who isn't there"}) == MALFORMED
    (described,) = owner.client.send(DescribeGroupsRequest(groups=[group.name]), 5).groups
    assert described.group_state == "Stable"
    assert [bytes(member.member_assignment) for member in described.members] == [MALFORMED]
    assert owner.sync() == MALFORMED, "also to whoever asks again"
    assert owner.heartbeat() is owner.commit() is owner.leave() is ErrorCode.NONE


def test_a_static_member_that_was_replaced_is_fenced(group: Group) -> None:
    former = group.member(instance_id="node 1")
    former.join()
    assert former.sync(**{former.id: b"all"}) == b"all"
    assert former.commit() is ErrorCode.NONE

    successor = group.member(instance_id="node 1")
    successor.join()
    assert successor.id != former.id
    assert successor.sync() == b"all"
    assert former.heartbeat() is former.commit() is former.leave() is ErrorCode.FENCED_INSTANCE_ID
    assert former.ask_to_sync().error_code == ErrorCode.FENCED_INSTANCE_ID
    assert former.ask_to_join().error_code == ErrorCode.FENCED_INSTANCE_ID
    assert successor.heartbeat() is successor.commit() is successor.leave() is ErrorCode.NONE


def test_a_member_joins_while_others_wait_for_their_parts(group: Group) -> None:
    leader, follower, third = joined_pair(group)
    waiting = follower.syncing()
    newcomer = third.joining()
    assert waiting.result(WAIT_S).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert leader.ask_to_sync(**{leader.id: b"one"}).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    former_generation = leader.generation

    rejoining = [leader.joining(), follower.joining()]
    for each in (newcomer, *rejoining):
        each.result(WAIT_S)
    assert {member.generation for member in (leader, follower, third)} == {former_generation + 1}
    assert leader.heartbeat(former_generation) is ErrorCode.ILLEGAL_GENERATION
    assert leader.commit(former_generation) is ErrorCode.ILLEGAL_GENERATION
    waiting, others = follower.syncing(), third.syncing()
    assert leader.sync(**{leader.id: b"one", follower.id: b"two", third.id: b"three"}) == b"one"
    assert (waiting.result(WAIT_S).assignment, others.result(WAIT_S).assignment) == (b"two", b"three")
    assert {member.leave() for member in (leader, follower, third)} == {ErrorCode.NONE}


def test_a_leader_that_never_syncs_is_out(group: Group) -> None:
    leader, follower, _ = joined_pair(group, rebalance_ms=2_000)
    waiting = follower.syncing()
    assert waiting.result(WAIT_S).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    follower.join()
    assert leader.heartbeat() is leader.commit() is ErrorCode.UNKNOWN_MEMBER_ID
    assert follower.sync(**{follower.id: b"all"}) == b"all"
    assert follower.leave() is ErrorCode.NONE


def joined_pair(group: Group, rebalance_ms: int = SESSION_MS) -> tuple[Member, Member, Member]:
    """Two members of one generation that has no assignment yet, the leader first, and one who isn't there yet."""
    leader, follower, third = (group.member(rebalance_ms=rebalance_ms) for _ in range(3))
    leader.join()
    assert leader.sync(**{leader.id: b"all"}) == b"all"
    newcomer = follower.joining()
    eventually(lambda: leader.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS, WAIT_S)
    leader.join()
    newcomer.result(WAIT_S)
    return leader, follower, third
