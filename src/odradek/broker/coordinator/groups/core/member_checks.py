"""Checks of group members in requests that are valid in any state: heartbeat and commit. Pure: time is passed in."""

from typing import NamedTuple

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.groups.core.group import Group, GroupState
from odradek.broker.coordinator.groups.core.group_requests import Moment


class Committer(NamedTuple):
    """Member for which a request commits; without a generation, a client that is no member."""

    member_id: str = ""
    instance_id: str | None = None
    generation: int = -1


def heartbeat(group: Group, member_id: str, instance_id: str | None, generation: int, now: Moment) -> ErrorCode:
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if error := member_error(group, member_id, instance_id, generation):
        return error
    group.expect_heartbeat(group.members[member_id], now)
    return ErrorCode.REBALANCE_IN_PROGRESS if group.state is GroupState.PREPARING_REBALANCE else ErrorCode.NONE


def may_commit(group: Group, committer: Committer, now: Moment) -> ErrorCode:
    """Check a commit, a sign of life: members may in their generation, any client while the group has no members."""
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if committer.generation < 0 and group.state is GroupState.EMPTY:
        return ErrorCode.NONE
    if error := member_error(group, *committer):
        return error
    if group.state is GroupState.COMPLETING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    group.expect_heartbeat(group.members[committer.member_id], now)
    return ErrorCode.NONE


def may_commit_in_transaction(group: Group, committer: Committer) -> ErrorCode:
    """Check a commit in a transaction. A producer that names no member (KIP-447) is fenced by its epoch alone."""
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    is_nameless = not committer.member_id and committer.instance_id is None
    if committer.generation < 0 and (group.state is GroupState.EMPTY or is_nameless):
        return ErrorCode.NONE
    return member_error(group, *committer)


def member_error(group: Group, member_id: str, instance_id: str | None, generation: int | None = None) -> ErrorCode:
    if instance_id is not None and group.static_members.get(instance_id, member_id) != member_id:
        return ErrorCode.FENCED_INSTANCE_ID
    if member_id not in group.members or (instance_id is not None and instance_id not in group.static_members):
        return ErrorCode.UNKNOWN_MEMBER_ID
    if generation is not None and generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.NONE
