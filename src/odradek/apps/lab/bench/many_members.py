"""Hundreds of members of a group, and of committers, in one thread.

Their requests are those of clients; the cost of a client library and its pauses before retries are left out. Members
that are answered together first send their requests together, then receive the answers one by one.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Self

from odradek.apps.lab.bench.systems import BenchError, System
from odradek.base.errors import ErrorCode
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.client.group_member import GroupMember
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
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
    """Return id and address of the coordinator, as soon as any live broker knows it."""
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


class ManyMembers:
    """A group of many members, each on a connection of its own. They subscribe to no topic: their parts are empty."""

    def __init__(self, address: tuple[str, int], group: str, size: int) -> None:
        self._group = group
        self._members = [
            GroupMember(group, [], session_timeout_ms=SESSION_MS, rebalance_timeout_ms=SESSION_MS) for _ in range(size)
        ]
        with ExitStack() as stack:
            self._clients = [stack.enter_context(connected(address)) for _ in self._members]
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def join(self) -> float:
        """Return the seconds from the first request to the assignment of the last member.

        One member exists already and rejoins last: a new group would have its first generations with few members.
        """
        first, *others = self._members
        first.take_join(self._clients[0].send(first.join_request()))
        began = self._clients[0].send(first.join_request())
        _check("first join", [began])
        first.take_join(began)
        first.take_sync(began, self._clients[0].send(first.sync_request(began, _no_partitions)))
        start = time.monotonic()
        self._joined(others)
        in_turn = (*others, first)
        joined = self._joined(in_turn)
        _check("join", joined)
        synced = self._all(
            [member.sync_request(answer, _no_partitions) for member, answer in zip(in_turn, joined, strict=True)]
        )
        _check("sync", synced)
        for member, answer, part in zip(in_turn, joined, synced, strict=True):
            if not part.assignment or member.take_sync(answer, part) is None:
                raise BenchError("not every member got its part")
        return time.monotonic() - start

    def beat(self) -> float:
        """Return the seconds for a heartbeat of every member, all at once."""
        start = time.monotonic()
        beats = [member.heartbeat_request() for member in self._members]
        _check("heartbeat", self._all([*beats[1:], beats[0]]))
        return time.monotonic() - start

    def leave(self) -> float:
        """Return the seconds for one LeaveGroup that names all members."""
        start = time.monotonic()
        members = [MemberIdentity(member_id=member.id) for member in self._members]
        _check("leave", [self._clients[0].send(LeaveGroupRequest(group_id=self._group, members=members))])
        return time.monotonic() - start

    def _joined(self, members: Sequence[GroupMember]) -> list[JoinGroupResponse]:
        answers: list[JoinGroupResponse] = self._all([member.join_request() for member in members])
        for member, answer in zip(members, answers, strict=True):
            member.take_join(answer)
        return answers

    def _all(self, requests: Sequence[Request]) -> list[Any]:
        """Send to the second member and the following; the first is last, if it is among them."""
        asked = list(zip((*self._clients[1:], self._clients[0]), requests, strict=False))
        for client, request in asked:
            client.submit(request)
        return [client.receive() for client, _ in asked]


def _no_partitions(topics: Sequence[str]) -> dict[str, int]:
    return dict.fromkeys(topics, 0)


def _check(what: str, answers: Sequence[Any]) -> None:
    if errors := {ErrorCode(answer.error_code).name for answer in answers if answer.error_code}:
        raise BenchError(f"{what}: {', '.join(sorted(errors))}")


def commit(group: str, topic: str, offset: int) -> OffsetCommitRequest:
    position = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    return OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=[position])])


def commit_error(answer: Any) -> ErrorCode:
    return ErrorCode(answer.topics[0].partitions[0].error_code)


def commit_for_each(client: BrokerClient, groups: Sequence[str], topic: str, offset: int) -> float:
    """Return the commits per second: one group in each request, a hundred in flight."""
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
