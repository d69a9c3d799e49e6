"""A member's whole life, at every version of every request that belongs to it."""

from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from odradek.base.errors import ErrorCode
from odradek.network.broker_client import BrokerClient
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from odradek.protocol.schema import Request

from .conftest import TopicMaker, unused_name

NEWEST = 9
OFFSET = 17
RequestT = TypeVar("RequestT", bound=Request)


class Member:
    """A client that speaks each request at a version, or at the last one that the request has."""

    def __init__(self, bootstrap: str, topic: str, version: int) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.client = BrokerClient(host, int(port), client_id=f"speaks-{version}")
        self.topic = topic
        self.version = version
        self.group = unused_name()
        self.id = ""
        self.generation = -1

    def of(self, request: type[Request]) -> int:
        return min(self.version, request.VERSIONS[-1])

    def find_coordinator(self) -> None:
        version = self.of(FindCoordinatorRequest)
        asked = FindCoordinatorRequest(coordinator_keys=[self.group]) if version >= 4 else None
        answer = self.client.send(asked or FindCoordinatorRequest(key=self.group), version)
        found = answer.coordinators[0] if version >= 4 else answer
        assert (found.error_code, found.node_id, found.host) == (ErrorCode.NONE, 0, "127.0.0.1")

    def join(self) -> None:
        version = self.of(JoinGroupRequest)

        def ask() -> JoinGroupRequest:
            request = JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=10_000,
                member_id=self.id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
            )
            if version >= 1:
                request.rebalance_timeout_ms = 20_000
            return request

        answer = self.client.send(ask(), version)
        if version >= 4:
            assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
            self.id = answer.member_id
            answer = self.client.send(ask(), version)
        assert (answer.error_code, answer.generation_id, answer.protocol_name) == (ErrorCode.NONE, 1, "range")
        assert [member.member_id for member in answer.members] == [answer.leader] == [answer.member_id]
        assert answer.member_id.startswith(f"speaks-{self.version}-")
        self.id, self.generation = answer.member_id, answer.generation_id

    def sync(self) -> None:
        version = self.of(SyncGroupRequest)
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.id,
            assignments=[SyncGroupRequestAssignment(member_id=self.id, assignment=b"mine")],
        )
        if version >= 5:
            request.protocol_type, request.protocol_name = "consumer", "range"
        answer = self.client.send(request, version)
        assert (answer.error_code, answer.assignment) == (ErrorCode.NONE, b"mine")

    def heartbeat(self) -> None:
        request = HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.id)
        assert self.client.send(request, self.of(HeartbeatRequest)).error_code == ErrorCode.NONE

    def commit(self) -> None:
        partitions = [
            OffsetCommitRequestPartition(partition_index=index, committed_offset=OFFSET, committed_metadata="words")
            for index in (0, 99)
        ]
        version = self.of(OffsetCommitRequest)
        request = OffsetCommitRequest(
            group_id=self.group, topics=[OffsetCommitRequestTopic(name=self.topic, partitions=partitions)]
        )
        if version >= 1:
            request.generation_id_or_member_epoch, request.member_id = self.generation, self.id
        answers = self.client.send(request, version).topics[0].partitions
        known = ErrorCode.NONE if version >= 1 else ErrorCode.UNKNOWN_MEMBER_ID  # v0 can't say who commits
        assert [answer.error_code for answer in answers] == [known, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

    def fetch(self) -> None:
        version = self.of(OffsetFetchRequest)
        if version >= 8:
            topics = [OffsetFetchRequestTopics(name=self.topic, partition_indexes=[0, 1])]
            groups = [OffsetFetchRequestGroup(group_id=self.group, topics=topics)]
            (answer,) = self.client.send(OffsetFetchRequest(groups=groups), version).groups
        else:
            asked = [OffsetFetchRequestTopic(name=self.topic, partition_indexes=[0, 1])]
            answer = self.client.send(OffsetFetchRequest(group_id=self.group, topics=asked), version)
        found = [(each.committed_offset, each.metadata) for each in answer.topics[0].partitions]
        assert found == [(OFFSET, "words") if self.version else (-1, ""), (-1, "")]

    def look(self) -> None:
        (group,) = self.client.send(DescribeGroupsRequest(groups=[self.group]), self.of(DescribeGroupsRequest)).groups
        assert (group.error_code, group.group_state, group.protocol_data) == (ErrorCode.NONE, "Stable", "range")
        assert [(member.member_id, member.member_assignment) for member in group.members] == [(self.id, b"mine")]
        assert [member.client_host for member in group.members] == ["/127.0.0.1"]
        listed = self.client.send(ListGroupsRequest(), self.of(ListGroupsRequest)).groups
        assert self.group in {each.group_id for each in listed}
        refused = self.client.send(DeleteGroupsRequest(groups_names=[self.group]), self.of(DeleteGroupsRequest))
        assert [each.error_code for each in refused.results] == [ErrorCode.NON_EMPTY_GROUP]

    def leave(self) -> None:
        version = self.of(LeaveGroupRequest)
        if version >= 3:
            request = LeaveGroupRequest(group_id=self.group, members=[MemberIdentity(member_id=self.id)])
            assert [each.error_code for each in self.client.send(request, version).members] == [ErrorCode.NONE]
        else:
            request = LeaveGroupRequest(group_id=self.group, member_id=self.id)
            assert self.client.send(request, version).error_code == ErrorCode.NONE

    def delete(self) -> None:
        partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in (0, 99)]
        topics = [OffsetDeleteRequestTopic(name=self.topic, partitions=partitions)]
        answer = self.client.send(OffsetDeleteRequest(group_id=self.group, topics=topics))
        errors = [each.error_code for each in answer.topics[0].partitions]
        assert errors == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        (gone,) = self.client.send(DeleteGroupsRequest(groups_names=[self.group]), self.of(DeleteGroupsRequest)).results
        # Without its last offset nothing was left of it.
        assert gone.error_code == ErrorCode.GROUP_ID_NOT_FOUND

    def live(self) -> None:
        with self.client:
            self.find_coordinator()
            self.join()
            self.sync()
            self.heartbeat()
            self.commit()
            self.fetch()
            self.look()
            self.leave()
            self.delete()


@pytest.fixture(scope="module")
def topic(bootstrap: str, new_topic: TopicMaker) -> str:
    return new_topic(partitions=2)


def test_a_life_at_every_version(bootstrap: str, topic: str) -> None:
    members = [Member(bootstrap, topic, version) for version in range(NEWEST + 1)]
    while members[0].client.send(FindCoordinatorRequest(key=""), 1).error_code:
        pass  # the groups' topic is being made
    with ThreadPoolExecutor(len(members)) as everybody:
        list(everybody.map(Member.live, members))


def test_coordinators_that_are_not_here(bootstrap: str) -> None:
    transactional, share, unknown = 1, 2, 9
    with Member(bootstrap, "", NEWEST).client as client:
        for key_type, version, error in [
            (transactional, 4, ErrorCode.UNSUPPORTED_VERSION),
            (share, 6, ErrorCode.COORDINATOR_NOT_AVAILABLE),
            (share, 5, ErrorCode.INVALID_REQUEST),
            (unknown, 6, ErrorCode.INVALID_REQUEST),
        ]:
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["a", "b"])
            answers = client.send(request, version).coordinators
            assert [(answer.key, answer.error_code, answer.node_id) for answer in answers] == [
                ("a", error, -1),
                ("b", error, -1),
            ]
