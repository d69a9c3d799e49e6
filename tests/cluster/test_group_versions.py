"""A member's whole life at every version of its requests, and what the wrong ones get: here, and from Apache Kafka.

What is expected of Odradek is expected of Kafka in the same words, so that nobody has to believe it.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from apache_kafka import KafkaPeer
from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
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
from waiting import PATIENCE_S

from .conftest import unused_name

NEWEST = 9
OFFSET = 17


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
        errors = {answer.partition_index: answer.error_code for answer in answers}
        assert errors == {0: ErrorCode.NONE, 99: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}

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
        assert found == [(OFFSET, "words") if version >= 1 else (OFFSET, ""), (-1, "")]  # ZooKeeper keeps no metadata

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
        errors = {each.partition_index: each.error_code for each in answer.topics[0].partitions}
        assert errors == {0: ErrorCode.NONE, 99: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
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
def kafka_bootstrap(kafka_peer: KafkaPeer) -> str:
    return kafka_peer.bootstrap_servers


def until_no_error(error_of: Callable[[], int]) -> None:
    """A broker that has just started, or was just asked for its first group, isn't ready at once."""
    deadline = time.monotonic() + PATIENCE_S
    while error := error_of():
        assert time.monotonic() < deadline, ErrorCode(error).name
        time.sleep(0.05)


def prepare(bootstrap: str) -> str:
    """A topic, and the groups' own topic, which is made by asking for a coordinator."""
    name = unused_name()
    creation = CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=2, replication_factor=1)])
    with Member(bootstrap, name, NEWEST).client as client:
        until_no_error(lambda: client.send(creation).topics[0].error_code)
        until_no_error(lambda: client.send(FindCoordinatorRequest(key=""), 1).error_code)
        until_no_error(lambda: client.send(DescribeGroupsRequest(groups=["nobody"])).groups[0].error_code)
    return name


def live_at_all(bootstrap: str, versions: range) -> None:
    topic = prepare(bootstrap)
    members = [Member(bootstrap, topic, version) for version in versions]
    with ThreadPoolExecutor(len(members)) as everybody:
        list(everybody.map(Member.live, members))


def test_a_life_at_every_version(bootstrap: str) -> None:
    live_at_all(bootstrap, range(NEWEST + 1))


def test_a_life_at_every_version_with_apache_kafka(kafka_bootstrap: str) -> None:
    live_at_all(kafka_bootstrap, range(NEWEST + 1))


def joining(**said: object) -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    usual = {"group_id": "wrong", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 1_000}
    return JoinGroupRequest(**{**usual, "protocol_type": "consumer", "protocols": protocols, **said})  # type: ignore[arg-type]


def committing(topic: str, **said: object) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="x" * 5000)
    topics = [OffsetCommitRequestTopic(name=topic, partitions=[partition])]
    return OffsetCommitRequest(topics=topics, **said)  # type: ignore[arg-type]


def fetching(topic: str) -> OffsetFetchRequest:
    return OffsetFetchRequest(group_id="nobody", topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[0])])


def wrong_requests(topic: str) -> list[tuple[Request, int]]:
    leaving = LeaveGroupRequest(group_id="nobody", members=[MemberIdentity(member_id="x")])
    return [
        (joining(group_id=""), 5),
        (joining(session_timeout_ms=1), 7),
        (joining(session_timeout_ms=2**31 - 1), 7),
        (joining(member_id="x"), 7),
        (joining(protocols=[]), 7),
        (joining(protocol_type=""), 6),
        (joining(member_id="x", group_instance_id="i"), 9),
        (SyncGroupRequest(group_id="nobody"), 5),
        (SyncGroupRequest(group_id="nobody"), 4),
        (SyncGroupRequest(group_id=""), 3),
        (HeartbeatRequest(group_id="nobody"), 4),
        (HeartbeatRequest(group_id=""), 4),
        (leaving, 5),
        (LeaveGroupRequest(group_id="nobody", member_id="x"), 2),
        (LeaveGroupRequest(group_id="", member_id="x"), 2),
        (committing(topic, group_id="nobody", generation_id_or_member_epoch=3, member_id="x"), 8),
        (committing(topic, group_id="nobody"), 8),
        (committing(topic, group_id=""), 8),
        (committing("no-such-topic", group_id="nobody"), 8),
        (fetching(topic), 1),
        (fetching(topic), 5),
        (fetching("no-such-topic"), 7),
        (OffsetFetchRequest(group_id="nobody", topics=None), 7),
        (DescribeGroupsRequest(groups=["nobody", ""], include_authorized_operations=True), 5),
        (ListGroupsRequest(states_filter=["bogus"]), 4),
        (ListGroupsRequest(types_filter=["consumer"]), 5),
        (DeleteGroupsRequest(groups_names=["nobody"]), 2),
        (OffsetDeleteRequest(group_id="nobody"), 0),
        (OffsetDeleteRequest(group_id=""), 0),
    ]


def test_what_is_wrong_gets_what_apache_kafka_says(bootstrap: str, kafka_bootstrap: str) -> None:
    answers = []
    for address in (bootstrap, kafka_bootstrap):
        topic = prepare(address)
        with Member(address, topic, NEWEST).client as client:
            said = [repr(client.send(request, version)) for request, version in wrong_requests(topic)]
        answers.append([line.replace(topic, "TOPIC") for line in said])
    ours, theirs = answers
    assert ours == theirs


@pytest.mark.parametrize(
    ("key_type", "version", "error"),
    [
        (2, 6, ErrorCode.COORDINATOR_NOT_AVAILABLE),  # share groups
        (2, 5, ErrorCode.INVALID_REQUEST),
        (9, 6, ErrorCode.INVALID_REQUEST),
    ],
)
def test_coordinators_that_are_not_here(bootstrap: str, key_type: int, version: int, error: ErrorCode) -> None:
    with Member(bootstrap, "", NEWEST).client as client:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["a", "b"])
        answers = client.send(request, version).coordinators
    assert [(answer.key, answer.error_code, answer.node_id) for answer in answers] == [
        ("a", error, -1),
        ("b", error, -1),
    ]
