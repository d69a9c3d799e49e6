"""Membership of a consumer group: the requests of a member, and the state that their answers leave.

Eager, with the range assignor. It does no I/O and has no clock: `GroupReader` asks the coordinator through a client of
the cluster, the laboratories on connections of their own.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from odradek.base.errors import ErrorCode
from odradek.client.consumer_protocol import (
    PROTOCOL_TYPE,
    RANGE,
    assign_ranges,
    encode_assignment,
    encode_subscription,
    read_assignment,
    read_subscription,
)
from odradek.client.group_admin import raise_for
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

_NOT_JOINED = -1
_JOIN_AGAIN = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.MEMBER_ID_REQUIRED,
    }
)

PartitionCounts = Callable[[Sequence[str]], Mapping[str, int]]
"""Return the number of partitions of each of the topics; asked by the leader of the group only."""


class GroupMember:
    def __init__(
        self, group: str, topics: Sequence[str], *, session_timeout_ms: int, rebalance_timeout_ms: int
    ) -> None:
        self.id = ""
        self.generation = _NOT_JOINED
        self._group = group
        self._topics = sorted(topics)
        self._session_timeout_ms = session_timeout_ms
        self._rebalance_timeout_ms = rebalance_timeout_ms

    @property
    def is_joined(self) -> bool:
        """True from a sync that succeeded until the coordinator asks to join again."""
        return self.generation != _NOT_JOINED

    def join_request(self) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            member_id=self.id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=RANGE, metadata=encode_subscription(self._topics))],
        )

    def take_join(self, answer: JoinGroupResponse) -> bool:
        """Return True if the member may sync, False if it is to join again."""
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.id = answer.member_id
        if self.is_out(code):
            return False
        raise_for(self._group, code)
        self.id = answer.member_id
        return True

    def sync_request(self, joined: JoinGroupResponse, partition_counts: PartitionCounts) -> SyncGroupRequest:
        """The leader of the group assigns its partitions; every other member asks for its own."""
        shares = _shares(joined, partition_counts) if joined.leader == self.id else ()
        return SyncGroupRequest(
            group_id=self._group,
            generation_id=joined.generation_id,
            member_id=self.id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=list(shares),
        )

    def take_sync(self, joined: JoinGroupResponse, answer: SyncGroupResponse) -> list[TopicPartition] | None:
        """Return the partitions of this member, or None if it is to join again."""
        code = ErrorCode(answer.error_code)
        if self.is_out(code):
            return None
        raise_for(self._group, code)
        self.generation = joined.generation_id
        return read_assignment(bytes(answer.assignment))

    def heartbeat_request(self) -> HeartbeatRequest:
        return HeartbeatRequest(group_id=self._group, generation_id=self.generation, member_id=self.id)

    def take_heartbeat(self, answer: HeartbeatResponse) -> None:
        """Take the answer; `is_joined` then says whether the member is still in the generation."""
        code = ErrorCode(answer.error_code)
        if not self.is_out(code):
            raise_for(self._group, code)

    def leave_request(self) -> LeaveGroupRequest:
        return LeaveGroupRequest(group_id=self._group, members=[MemberIdentity(member_id=self.id)])

    def left(self) -> None:
        self.generation = _NOT_JOINED

    def is_out(self, code: ErrorCode) -> bool:
        """Note and return whether the coordinator's answer asks the member to join again."""
        if code not in _JOIN_AGAIN:
            return False
        self.generation = _NOT_JOINED
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.id = ""
        return True


def _shares(joined: JoinGroupResponse, partition_counts: PartitionCounts) -> Iterable[SyncGroupRequestAssignment]:
    wanted = {member.member_id: read_subscription(bytes(member.metadata)) for member in joined.members}
    counts = partition_counts(sorted({topic for topics in wanted.values() for topic in topics}))
    for member, partitions in assign_ranges(wanted, counts).items():
        yield SyncGroupRequestAssignment(member_id=member, assignment=encode_assignment(partitions))
