"""Members of a group, and committers, by the hundred from one thread.

On the wire they are what clients are; what a client library costs, and how long it waits before it asks again, is left
out. Whoever is to be answered together is asked together first, and then heard one by one.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Self

from odradek.apps.lab.bench.systems import BenchError, System
from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient, ConnectionFailed
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
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from odradek.protocol.schema import Request

WAIT_S_MAX = 120.0
SESSION_MS = 60_000
IN_FLIGHT = 100
ASK_AGAIN = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT,
}


def connected(address: tuple[str, int]) -> BrokerClient:
    return BrokerClient(*address, "crowd", round(WAIT_S_MAX * 1000))


def coordinator_of(system: System, group: str) -> tuple[int, tuple[str, int]]:
    """Id and address, by the account of any broker that lives, once one of them knows."""
    deadline = time.monotonic() + WAIT_S_MAX
    while time.monotonic() < deadline:
        for port in system.ports:
            try:
                with connected(("127.0.0.1", port)) as client:
                    (found,) = client.send(FindCoordinatorRequest(coordinator_keys=[group])).coordinators
            except ConnectionFailed:
                continue
            if not found.error_code:
                return found.node_id, (found.host, found.port)
        time.sleep(0.02)
    raise BenchError(f"no coordinator for {group} within {WAIT_S_MAX:.0f} s")


class Crowd:
    """A group with as many members, each on a connection of its own."""

    def __init__(self, address: tuple[str, int], group: str, size: int) -> None:
        self._group = group
        self._stack = ExitStack()
        self._clients = [self._stack.enter_context(connected(address)) for _ in range(size)]
        self._ids = [""] * size
        self._generation = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def join(self) -> float:
        """Seconds from the first question to the last member's part.

        One is there already and rejoins last: a group that begins would have its first generations with a few only.
        """
        first = self._clients[0]
        self._ids[0] = first.send(self._joining("")).member_id
        began = first.send(self._joining(self._ids[0]))
        _check("first join", [began])
        self._generation = began.generation_id
        part = SyncGroupRequestAssignment(member_id=self._ids[0], assignment=b"everything")
        _check("first sync", [first.send(self._syncing(self._ids[0], [part]))])
        start = time.monotonic()
        self._ids[1:] = [answer.member_id for answer in self._all([self._joining("")] * (len(self._ids) - 1))]
        joined = self._all([self._joining(id) for id in (*self._ids[1:], self._ids[0])])
        _check("join", joined)
        leader = joined[0].leader
        self._generation = joined[0].generation_id
        parts = [SyncGroupRequestAssignment(member_id=id, assignment=b"a part") for id in self._ids]
        synced = self._all([self._syncing(id, parts if id == leader else []) for id in (*self._ids[1:], self._ids[0])])
        _check("sync", synced)
        if {bytes(answer.assignment) for answer in synced} != {b"a part"}:
            raise BenchError("not every member got its part")
        return time.monotonic() - start

    def beat(self) -> float:
        """Seconds for a heartbeat of every member, all at once."""
        start = time.monotonic()
        beats = [HeartbeatRequest(group_id=self._group, generation_id=self._generation, member_id=i) for i in self._ids]
        _check("heartbeat", self._all([*beats[1:], beats[0]]))
        return time.monotonic() - start

    def leave(self) -> float:
        """Seconds for one request in the name of all."""
        start = time.monotonic()
        members = [MemberIdentity(member_id=id) for id in self._ids]
        _check("leave", [self._clients[0].send(LeaveGroupRequest(group_id=self._group, members=members))])
        return time.monotonic() - start

    def _all(self, requests: Sequence[Request]) -> list[Any]:
        """From the second member on; the first comes last, if it is among them."""
        asked = list(zip((*self._clients[1:], self._clients[0]), requests, strict=False))
        for client, request in asked:
            client.submit(request)
        return [client.receive() for client, _ in asked]

    def _joining(self, member_id: str) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=bytes(30))],
        )

    def _syncing(self, member_id: str, parts: list[SyncGroupRequestAssignment]) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self._group,
            generation_id=self._generation,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=parts,
        )


def _check(what: str, answers: Sequence[Any]) -> None:
    if errors := {ErrorCode(answer.error_code).name for answer in answers if answer.error_code}:
        raise BenchError(f"{what}: {', '.join(sorted(errors))}")


def commit(group: str, topic: str, offset: int) -> OffsetCommitRequest:
    position = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    return OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=[position])])


def commit_error(answer: Any) -> ErrorCode:
    return ErrorCode(answer.topics[0].partitions[0].error_code)


def commit_for_each(client: BrokerClient, groups: Sequence[str], topic: str, offset: int) -> float:
    """One commit per group and request, a hundred in flight; how many a second."""
    start = time.monotonic()
    answered = 0
    for begin in range(0, len(groups), IN_FLIGHT):
        part = groups[begin : begin + IN_FLIGHT]
        for group in part:
            client.submit(commit(group, topic, offset))
        for _ in part:
            if error := commit_error(client.receive()):
                raise BenchError(f"commit: {error.name}")
            answered += 1
    return answered / (time.monotonic() - start)


def listed(client: BrokerClient) -> int:
    answer = client.send(ListGroupsRequest())
    _check("list", [answer])
    return len(answer.groups)
