"""Reading as a member of a consumer group: joins, reads what it is given, commits where it stands, leaves.

Eager, with the range assignor, which every Kafka client knows. One thread does everything, so heartbeats go out between
two polls: whoever takes longer than the session for what a poll answered is out of the group, and joins again.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from struct import Struct

from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.broker_client import ConnectionFailed
from odradek.client.cluster_client import ClusterClient
from odradek.client.group_admin import ask_coordinator, commit_offsets, committed_offsets, raise_for, read_assignment
from odradek.client.partition_offsets import list_offsets
from odradek.client.record_reader import DEFAULT_MAX_WAIT_MS, DEFAULT_PARTITION_MAX_BYTES, Fetched, RecordReader
from odradek.model.topology import TopicPartition
from odradek.protocol.isolation import IsolationLevel
from odradek.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from odradek.protocol.messages.consumer_protocol_assignment import TopicPartition as AssignedTopic
from odradek.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

_VERSION = Struct(">h")
_NEWEST_SUBSCRIPTION = 3
_SESSION_MS = 45_000
_HEARTBEAT_S = 3.0
_COMMIT_S = 5.0
_NOT_JOINED = -1
_JOIN_AGAIN = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.MEMBER_ID_REQUIRED,
    }
)


class GroupReader:
    def __init__(
        self,
        client: ClusterClient,
        group: str,
        topics: Sequence[str],
        *,
        begin_at: int,
        commits: bool = True,
        max_wait_ms: int = DEFAULT_MAX_WAIT_MS,
        partition_max_bytes: int = DEFAULT_PARTITION_MAX_BYTES,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> None:
        """`begin_at`: `EARLIEST` or `LATEST`, for partitions in which the group has not been."""
        self._client = client
        self._group = group
        self._topics = sorted(topics)
        self._begin_at = begin_at
        self._commits = commits
        self._max_wait_ms = max_wait_ms
        self._partition_max_bytes = partition_max_bytes
        self._isolation = isolation
        self._member_id = ""
        self._generation = _NOT_JOINED
        self._reader = self._reading({})
        self._begun: dict[TopicPartition, int] = {}
        self._heartbeat_at = self._commit_at = 0.0

    @property
    def is_finished(self) -> bool:
        return False

    def stop(self, tp: TopicPartition) -> None:
        """No more of this partition, until the next rebalance."""
        self._reader.stop(tp)

    def poll(self) -> list[Fetched]:
        """Serve the group protocol, then return the records that have arrived. What was answered before counts as
        consumed.
        """
        if self._generation == _NOT_JOINED:
            self._client.retrying(self._join)
            return []
        if not self._keep_up():
            return []
        if self._reader.is_finished:  # more members than partitions
            time.sleep(self._max_wait_ms / 1000)
            return []
        return self._reader.poll()

    def close(self, consumed: Mapping[TopicPartition, int]) -> None:
        """Commit the consumed positions of partitions that are still assigned, and leave the group, so that it
        rebalances at once.
        """
        if self._generation == _NOT_JOINED:
            return
        if self._commits:
            self._commit({tp: consumed.get(tp, self._begun[tp]) for tp in self._reader.positions})
        if self._member_id:
            leave = LeaveGroupRequest(group_id=self._group, members=[MemberIdentity(member_id=self._member_id)])
            with suppress(KafkaError, ConnectionFailed):
                ask_coordinator(self._client, self._group, leave, LeaveGroupResponse)
        self._generation = _NOT_JOINED

    def _keep_up(self) -> bool:
        """Commits and sends a heartbeat where it is time; whether it is still in the group."""
        if self._commits and time.monotonic() >= self._commit_at:
            self._commit(self._reader.positions)
        if self._generation != _NOT_JOINED and time.monotonic() >= self._heartbeat_at:
            self._heartbeat()
        return self._generation != _NOT_JOINED

    def _commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._commit_at = time.monotonic() + _COMMIT_S
        if not offsets:
            return
        try:
            commit_offsets(self._client, self._group, offsets, member_id=self._member_id, generation=self._generation)
        except KafkaError as error:
            if error.code not in _JOIN_AGAIN:
                raise
            self._out(error.code)

    def _heartbeat(self) -> None:
        request = HeartbeatRequest(group_id=self._group, generation_id=self._generation, member_id=self._member_id)
        answer = self._client.retrying(lambda: ask_coordinator(self._client, self._group, request, HeartbeatResponse))
        self._heartbeat_at = time.monotonic() + _HEARTBEAT_S
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.REBALANCE_IN_PROGRESS and self._commits:
            self._commit(self._reader.positions)
        if code in _JOIN_AGAIN:
            self._out(code)
        else:
            raise_for(self._group, code)

    def _out(self, why: ErrorCode) -> None:
        self._generation = _NOT_JOINED
        if why is ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""

    # ---- joining

    def _join(self) -> None:
        """One attempt; where the group says "again", the next poll makes it."""
        joined = ask_coordinator(self._client, self._group, self._join_request(), JoinGroupResponse)
        code = ErrorCode(joined.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
        elif code in _JOIN_AGAIN:
            self._out(code)
        else:
            raise_for(self._group, code)
            self._member_id = joined.member_id
            self._sync(joined)

    def _join_request(self) -> JoinGroupRequest:
        subscription = _VERSION.pack(0) + ConsumerProtocolSubscription(topics=self._topics).encode(0)
        return JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=_SESSION_MS,
            rebalance_timeout_ms=self._client.request_timeout_ms,
            member_id=self._member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
        )

    def _sync(self, joined: JoinGroupResponse) -> None:
        is_leader = joined.leader == self._member_id
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=joined.generation_id,
            member_id=self._member_id,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
            assignments=self._assignments(joined) if is_leader else [],
        )
        answer = ask_coordinator(self._client, self._group, request, SyncGroupResponse)
        code = ErrorCode(answer.error_code)
        if code in _JOIN_AGAIN:
            self._out(code)
            return
        raise_for(self._group, code)
        self._generation = joined.generation_id
        self._begun = self._positions(read_assignment(bytes(answer.assignment)))
        self._reader = self._reading(self._begun)
        self._heartbeat_at = time.monotonic() + _HEARTBEAT_S
        self._commit_at = time.monotonic() + _COMMIT_S

    def _assignments(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        wanted = {member.member_id: read_subscription(bytes(member.metadata)) for member in joined.members}
        names = sorted({topic for topics in wanted.values() for topic in topics})
        counts = {name: len(state.partitions) for name, state in self._client.topics(names).items()}
        return [
            SyncGroupRequestAssignment(member_id=member, assignment=encode_assignment(partitions))
            for member, partitions in assign_ranges(wanted, counts).items()
        ]

    def _positions(self, assigned: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        if not assigned:
            return {}
        committed = committed_offsets(self._client, self._group, assigned)
        fresh = [tp for tp in assigned if tp not in committed]
        begun = list_offsets(self._client, dict.fromkeys(fresh, self._begin_at), self._isolation) if fresh else {}
        return {**committed, **{tp: found.offset or 0 for tp, found in begun.items()}}

    def _reading(self, positions: Mapping[TopicPartition, int]) -> RecordReader:
        return RecordReader(
            self._client,
            positions,
            max_wait_ms=self._max_wait_ms,
            partition_max_bytes=self._partition_max_bytes,
            isolation=self._isolation,
        )


def read_subscription(data: bytes) -> list[str]:
    version = min(_VERSION.unpack_from(data)[0], _NEWEST_SUBSCRIPTION)
    subscription, _ = ConsumerProtocolSubscription.decode(memoryview(data), _VERSION.size, version)
    return list(subscription.topics)


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for tp in partitions:
        topics[tp.topic].append(tp.partition)
    assigned = [AssignedTopic(topic=topic, partitions=numbers) for topic, numbers in topics.items()]
    return _VERSION.pack(0) + ConsumerProtocolAssignment(assigned_partitions=assigned).encode(0)


def assign_ranges(
    wanted: Mapping[str, Sequence[str]], partition_counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """Topic by topic, to the members that want it in order of their ids: neighbouring partitions, the first members one
    more where it doesn't come out even."""
    shares: dict[str, list[TopicPartition]] = {member: [] for member in wanted}
    for topic, count in sorted(partition_counts.items()):
        members = sorted(member for member, topics in wanted.items() if topic in topics)
        first = 0
        for number, member in enumerate(members):
            size = count // len(members) + (number < count % len(members))
            shares[member] += [TopicPartition(topic, partition) for partition in range(first, first + size)]
            first += size
    return shares
