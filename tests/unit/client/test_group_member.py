"""A member of a group: the state that the coordinator's answers leave."""

import pytest

from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.consumer_protocol import encode_assignment, encode_subscription, read_assignment
from odradek.client.group_member import GroupMember
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.heartbeat import HeartbeatResponse
from odradek.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from odradek.protocol.messages.sync_group import SyncGroupResponse


def new_member() -> GroupMember:
    return GroupMember("g", ["t"], session_timeout_ms=10_000, rebalance_timeout_ms=60_000)


def joined_as(leader: str, *members: str) -> JoinGroupResponse:
    subscription = encode_subscription(["t"])
    told = [JoinGroupResponseMember(member_id=member, metadata=subscription) for member in members]
    return JoinGroupResponse(generation_id=3, protocol_name="range", leader=leader, member_id="a", members=told)


def in_group() -> GroupMember:
    member = new_member()
    joined = joined_as("b")
    assert member.take_join(joined)
    assert member.take_sync(joined, SyncGroupResponse(assignment=encode_assignment([TopicPartition("t", 1)])))
    return member


def test_the_first_join_gives_an_id_and_the_second_a_generation() -> None:
    member = new_member()
    assert not member.take_join(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="a"))
    assert member.join_request().member_id == "a"
    joined = joined_as("a", "a", "b")
    assert member.take_join(joined)
    assert not member.is_joined, "it has to sync first"
    request = member.sync_request(joined, lambda topics: dict.fromkeys(topics, 3))
    assert {part.member_id: read_assignment(bytes(part.assignment)) for part in request.assignments} == {
        "a": [TopicPartition("t", 0), TopicPartition("t", 1)],
        "b": [TopicPartition("t", 2)],
    }
    answer = SyncGroupResponse(assignment=encode_assignment([TopicPartition("t", 0)]))
    assert member.take_sync(joined, answer) == [TopicPartition("t", 0)]
    assert (member.is_joined, member.heartbeat_request().generation_id) == (True, 3)


def test_only_the_leader_assigns() -> None:
    member = new_member()
    joined = joined_as("b")
    member.take_join(joined)
    assert member.sync_request(joined, lambda topics: pytest.fail("asked for partitions")).assignments == []


@pytest.mark.parametrize(
    ("code", "id_after"),
    [
        (ErrorCode.REBALANCE_IN_PROGRESS, "a"),
        (ErrorCode.ILLEGAL_GENERATION, "a"),
        (ErrorCode.UNKNOWN_MEMBER_ID, ""),
    ],
)
def test_a_member_that_is_out_joins_again(code: ErrorCode, id_after: str) -> None:
    member = in_group()
    member.take_heartbeat(HeartbeatResponse())
    assert member.is_joined
    member.take_heartbeat(HeartbeatResponse(error_code=code))
    assert (member.is_joined, member.id) == (False, id_after)


def test_other_errors_are_raised() -> None:
    member = in_group()
    with pytest.raises(KafkaError):
        member.take_heartbeat(HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaError):
        member.take_join(JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR))
