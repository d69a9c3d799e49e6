"""Consumer with a group membership: joins, reads the assigned partitions, commits its positions, leaves.

One thread does everything and sends heartbeats between two polls: a caller that takes longer than the session timeout
to process the records of one poll loses its membership, and joins again.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.broker_client import ConnectionFailed
from odradek.client.cluster_client import ClusterClient
from odradek.client.group_admin import ask_coordinator, commit_offsets, committed_offsets
from odradek.client.group_member import GroupMember
from odradek.client.partition_offsets import list_offsets
from odradek.client.record_reader import DEFAULT_OPTIONS, Fetched, FetchOptions, RecordReader
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.heartbeat import HeartbeatResponse
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupResponse
from odradek.protocol.messages.sync_group import SyncGroupResponse

_SESSION_MS = 45_000
_HEARTBEAT_S = 3.0
_COMMIT_S = 5.0


class GroupReader:
    def __init__(
        self,
        client: ClusterClient,
        group: str,
        topics: Sequence[str],
        *,
        begin_at: int,
        commits: bool = True,
        options: FetchOptions = DEFAULT_OPTIONS,
    ) -> None:
        """`begin_at`: `EARLIEST` or `LATEST`, for partitions without a committed offset."""
        self._client = client
        self._group = group
        self._begin_at = begin_at
        self._commits = commits
        self._options = options
        self._member = GroupMember(
            group, topics, session_timeout_ms=_SESSION_MS, rebalance_timeout_ms=client.request_timeout_ms
        )
        self._reader = self._reading({})
        self._begun: dict[TopicPartition, int] = {}
        self._heartbeat_at = self._commit_at = 0.0

    @property
    def is_finished(self) -> bool:
        return False

    def stop(self, tp: TopicPartition) -> None:
        """Stop reading the partition, until the next rebalance."""
        self._reader.stop(tp)

    def poll(self) -> list[Fetched]:
        """Serve the group protocol, then return the records that have arrived. Records returned before count as
        consumed.
        """
        if not self._member.is_joined:
            self._client.retrying(self._join)
            return []
        if not self._keep_up():
            return []
        if self._reader.is_finished:  # more members than partitions
            time.sleep(self._options.max_wait_ms / 1000)
            return []
        return self._reader.poll()

    def close(self, consumed: Mapping[TopicPartition, int]) -> None:
        """Commit the consumed positions of partitions that are still assigned, and leave the group, so that it
        rebalances at once.
        """
        if not self._member.is_joined:
            return
        if self._commits:
            self._commit({tp: consumed.get(tp, self._begun[tp]) for tp in self._reader.positions})
        if self._member.id:
            with suppress(KafkaError, ConnectionFailed):
                ask_coordinator(self._client, self._group, self._member.leave_request(), LeaveGroupResponse)
        self._member.left()

    def _keep_up(self) -> bool:
        """Commit and send a heartbeat if they are due; return whether the member is still in the group."""
        if self._commits and time.monotonic() >= self._commit_at:
            self._commit(self._reader.positions)
        if self._member.is_joined and time.monotonic() >= self._heartbeat_at:
            self._heartbeat()
        return self._member.is_joined

    def _commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._commit_at = time.monotonic() + _COMMIT_S
        if not offsets:
            return
        try:
            commit_offsets(
                self._client, self._group, offsets, member_id=self._member.id, generation=self._member.generation
            )
        except KafkaError as error:
            if not self._member.is_out(error.code):
                raise

    def _heartbeat(self) -> None:
        request = self._member.heartbeat_request()
        answer = self._client.retrying(lambda: ask_coordinator(self._client, self._group, request, HeartbeatResponse))
        self._heartbeat_at = time.monotonic() + _HEARTBEAT_S
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS and self._commits:
            self._commit(self._reader.positions)
        self._member.take_heartbeat(answer)

    def _join(self) -> None:
        """Try to join once; the next poll repeats it if necessary."""
        joined = ask_coordinator(self._client, self._group, self._member.join_request(), JoinGroupResponse)
        if not self._member.take_join(joined):
            return
        request = self._member.sync_request(joined, self._partition_counts)
        answer = ask_coordinator(self._client, self._group, request, SyncGroupResponse)
        assigned = self._member.take_sync(joined, answer)
        if assigned is None:
            return
        self._begun = self._positions(assigned)
        self._reader = self._reading(self._begun)
        self._heartbeat_at = time.monotonic() + _HEARTBEAT_S
        self._commit_at = time.monotonic() + _COMMIT_S

    def _partition_counts(self, topics: Sequence[str]) -> dict[str, int]:
        return {name: len(state.partitions) for name, state in self._client.topics(topics).items()}

    def _positions(self, assigned: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        if not assigned:
            return {}
        committed = committed_offsets(self._client, self._group, assigned, stable=True)
        fresh = [tp for tp in assigned if tp not in committed]
        begun = (
            list_offsets(self._client, dict.fromkeys(fresh, self._begin_at), self._options.isolation) if fresh else {}
        )
        return {**committed, **{tp: found.offset or 0 for tp, found in begun.items()}}

    def _reading(self, positions: Mapping[TopicPartition, int]) -> RecordReader:
        return RecordReader(self._client, positions, self._options)
