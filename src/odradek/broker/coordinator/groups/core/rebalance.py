"""Rebalances of a group: members join, sync, send heartbeats, leave and time out. Decisions of the group protocol.

    members join → PreparingRebalance, until all are in or time is up → the leader assigns → the others sync → Stable

A decision is a generator over effects: it yields answers to waiting members and records to store, and gets, perhaps
much later, the result of the write. Time is passed in. This module uses no lock, log or socket.
"""

from collections.abc import Generator, Mapping
from typing import Final

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.groups.core.group import NEVER_MS, Group, GroupState, Member
from odradek.broker.coordinator.groups.core.group_requests import (
    NO_GENERATION,
    Decision,
    Effect,
    GroupRules,
    JoinAnswer,
    Joining,
    JoinWaiter,
    Moment,
    NoteGroup,
    Protocols,
    Reply,
    Stored,
    StoreGroup,
    SyncAnswer,
    Syncing,
    SyncWaiter,
)
from odradek.broker.coordinator.groups.core.member_checks import member_error

NEW_MEMBER_TIMEOUT_MS: Final = 300_000
"""A client that gave up on its first join must not be waited for until the end of a long rebalance."""


# ---- join


def join(group: Group, joining: Joining, waiter: JoinWaiter, rules: GroupRules, now: Moment) -> Decision:
    if not _has_room(group, joining.member_id, rules):
        group.remove(joining.member_id)
        yield _refused(waiter, "", ErrorCode.GROUP_MAX_SIZE_REACHED)
    elif group.state is GroupState.DEAD:
        yield _refused(waiter, joining.member_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    elif not group.supports(joining.protocol_type, joining.protocols):
        yield _refused(waiter, joining.member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    elif joining.member_id:
        yield from _known_member_joins(group, joining, waiter, rules, now)
    elif joining.instance_id is not None and (old_id := group.static_members.get(joining.instance_id)) is not None:
        yield from _static_member_returns(group, group.members[old_id], joining, waiter, rules, now)
    elif joining.needs_known_id:
        deadline_ms = now.monotonic_ms + joining.session_timeout_ms
        group.pending_members[joining.fresh_id] = group.wake_by(deadline_ms)
        yield _refused(waiter, joining.fresh_id, ErrorCode.MEMBER_ID_REQUIRED)
    else:
        yield from _add(group, joining.fresh_id, joining, waiter, rules, now)
    yield from _maybe_complete_join(group, now)


def _has_room(group: Group, member_id: str, rules: GroupRules) -> bool:
    match group.state:
        case GroupState.EMPTY | GroupState.DEAD:
            return True
        case GroupState.PREPARING_REBALANCE:
            return member_id in group.waiting_to_join or len(group.waiting_to_join) < rules.max_size
        case _:
            return member_id in group.members or len(group.members) < rules.max_size


def _known_member_joins(group: Group, joining: Joining, waiter: JoinWaiter, rules: GroupRules, now: Moment) -> Decision:
    member_id = joining.member_id
    if member_id in group.pending_members and joining.instance_id is None:
        yield from _add(group, member_id, joining, waiter, rules, now)
    elif error := member_error(group, member_id, joining.instance_id):
        yield _refused(waiter, member_id, error)
    elif _must_rebalance(group, group.members[member_id], joining.protocols):
        _say_why(group, group.members[member_id], joining)
        yield from _wait_to_join(group, group.members[member_id], joining, waiter)
        yield from _maybe_prepare(group, rules, now)
    else:
        # It missed the answer to its last join, or it is a follower without changes.
        tells_members = group.state is GroupState.COMPLETING_REBALANCE and member_id == group.leader
        yield Reply(waiter, _joined(group, member_id, tells_members=tells_members))


def _must_rebalance(group: Group, member: Member, protocols: Protocols) -> bool:
    match group.state:
        case GroupState.COMPLETING_REBALANCE:
            return member.protocols != protocols
        case GroupState.STABLE:
            return member.id == group.leader or member.protocols != protocols
        case _:
            return True


def _say_why(group: Group, member: Member, joining: Joining) -> None:
    if member.protocols != joining.protocols:
        group.because(f"{member} reads other topics or assigns otherwise", joining.reason)
    elif group.state is GroupState.STABLE:
        group.because(f"{member}, who leads the group, asked for it", joining.reason)


def _wait_to_join(group: Group, member: Member, joining: Joining, waiter: JoinWaiter) -> Decision:
    group.update(member, joining.protocols, joining.rebalance_timeout_ms, joining.session_timeout_ms)
    earlier = group.waiting_to_join.get(member.id)
    group.waiting_to_join[member.id] = waiter
    if earlier is not None:
        yield _refused(earlier, member.id, ErrorCode.REBALANCE_IN_PROGRESS)


def _add(
    group: Group, member_id: str, joining: Joining, waiter: JoinWaiter, rules: GroupRules, now: Moment
) -> Decision:
    member = Member(
        member_id,
        joining.instance_id,
        joining.client_id,
        joining.client_host,
        joining.rebalance_timeout_ms,
        joining.session_timeout_ms,
        joining.protocols,
        is_new=True,
        deadline_ms=group.wake_by(now.monotonic_ms + NEW_MEMBER_TIMEOUT_MS),
    )
    group.member_added = group.state is GroupState.PREPARING_REBALANCE and group.generation == 0
    group.add(member, joining.protocol_type)
    group.waiting_to_join[member_id] = waiter
    group.because(f"{member} joined")
    yield from _maybe_prepare(group, rules, now)


def _static_member_returns(
    group: Group, member: Member, joining: Joining, waiter: JoinWaiter, rules: GroupRules, now: Moment
) -> Decision:
    """Replace the former instance of a static member, which is fenced; the group rebalances only if the protocol
    changes."""
    former = (member.id, member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
    former_leader = group.leader or ""
    yield from _dismiss(group, member.id, ErrorCode.FENCED_INSTANCE_ID, answered_id=member.id)
    group.rename(member, joining.fresh_id)
    group.update(member, joining.protocols, joining.rebalance_timeout_ms, joining.session_timeout_ms)
    group.expect_heartbeat(member, now)
    if group.state is not GroupState.STABLE or group.select_protocol() != group.protocol_name:
        group.waiting_to_join[member.id] = waiter
        group.because(f"{member} is back")
        if group.state is not GroupState.PREPARING_REBALANCE:
            yield from _maybe_prepare(group, rules, now)
        return
    generation = group.generation
    stored = yield StoreGroup(group.to_record({each.id: each.assignment for each in group.members.values()}))
    if stored.error:
        if group.state is GroupState.STABLE and group.generation == generation and member.id == joining.fresh_id:
            group.rename(member, former[0])
            group.update(member, *former[1:])
            group.expect_heartbeat(member, stored.now)
        yield _refused(waiter, "", stored.error)
    elif error := member_error(group, joining.fresh_id, joining.instance_id):
        yield _refused(waiter, joining.fresh_id, error)  # meanwhile it was removed, or joined once more
    elif joining.may_skip_assignment:
        leads = group.leader == member.id
        yield Reply(waiter, _joined(group, member.id, tells_members=leads, skip_assignment=leads))
    else:
        # A new assignment by it as leader would reach no member.
        yield Reply(waiter, _joined(group, member.id, leader=former_leader))


def _joined(
    group: Group,
    member_id: str,
    *,
    tells_members: bool = False,
    skip_assignment: bool = False,
    leader: str | None = None,
) -> JoinAnswer:
    return JoinAnswer(
        ErrorCode.NONE,
        member_id,
        group.generation,
        group.protocol_type,
        group.protocol_name,
        (group.leader or "") if leader is None else leader,
        skip_assignment,
        group.joined_members() if tells_members else (),
    )


def _refused(waiter: JoinWaiter, member_id: str, error: ErrorCode) -> Reply[JoinAnswer]:
    return Reply(waiter, JoinAnswer(error, member_id))


# ---- the rebalance


def _maybe_prepare(group: Group, rules: GroupRules, now: Moment) -> Decision:
    if not group.can_rebalance:
        return
    if group.state is GroupState.COMPLETING_REBALANCE:
        yield from _hand_out(group, {}, ErrorCode.REBALANCE_IN_PROGRESS, now)
    group.pending_sync.clear()
    group.sync_deadline_ms = NEVER_MS
    wait_ms = group.rebalance_timeout_ms
    group.extensions_left_ms = None
    if group.state is GroupState.EMPTY:
        # The first members wait for more to come, so that a group that starts needn't rebalance for each of them.
        group.extensions_left_ms = max(wait_ms - rules.initial_rebalance_delay_ms, 0)
        wait_ms = rules.initial_rebalance_delay_ms
    group.join_deadline_ms = group.wake_by(now.monotonic_ms + wait_ms)
    group.move_to(GroupState.PREPARING_REBALANCE, now)
    yield from _maybe_complete_join(group, now)


def _maybe_complete_join(group: Group, now: Moment) -> Decision:
    prepares = group.state is GroupState.PREPARING_REBALANCE and group.extensions_left_ms is None
    if prepares and group.all_joined:
        yield from _complete_join(group, now)


def _join_time_is_up(group: Group, rules: GroupRules, now: Moment) -> Decision:
    if group.member_added and group.extensions_left_ms:
        delay_ms = min(rules.initial_rebalance_delay_ms, group.extensions_left_ms)
        group.member_added = False
        group.extensions_left_ms -= delay_ms
        group.join_deadline_ms = group.wake_by(now.monotonic_ms + delay_ms)
    else:
        yield from _complete_join(group, now)


def _complete_join(group: Group, now: Moment) -> Decision:
    """Complete the join phase with the present members. Static members keep their place until their session ends."""
    for member in list(group.members.values()):
        if member.id not in group.waiting_to_join and member.instance_id is None:
            group.because(f"{member} did not join again in time")
            group.remove(member.id)
    group.extensions_left_ms = None
    group.member_added = False
    if group.members and not group.elect_joined_leader():
        group.join_deadline_ms = group.wake_by(now.monotonic_ms + group.rebalance_timeout_ms)
        return
    group.join_deadline_ms = NEVER_MS
    group.next_generation(now)
    yield group.rebalanced()
    if group.state is GroupState.EMPTY:
        yield NoteGroup(group.to_record({}))
        return
    group.pending_sync.update(group.members)
    group.sync_deadline_ms = group.wake_by(now.monotonic_ms + group.rebalance_timeout_ms)
    for member in group.members.values():
        member.is_new = False
        group.expect_heartbeat(member, now)
        if (waiter := group.waiting_to_join.pop(member.id, None)) is not None:
            yield Reply(waiter, _joined(group, member.id, tells_members=member.id == group.leader))


# ---- sync


def sync(group: Group, syncing: Syncing, waiter: SyncWaiter, rules: GroupRules, now: Moment) -> Decision:
    if error := _sync_error(group, syncing):
        yield Reply(waiter, SyncAnswer(error))
        return
    member = group.members[syncing.member_id]
    group.forget_pending_sync(member.id)
    if group.state is GroupState.STABLE:
        group.expect_heartbeat(member, now)
        yield Reply(waiter, _synced(group, member))
        return
    earlier = group.waiting_to_sync.get(member.id)
    group.waiting_to_sync[member.id] = waiter
    if earlier is not None:
        yield Reply(earlier, SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))
    if member.id == group.leader and group.assigning != group.generation:
        yield from _take_assignment(group, syncing.assignments, rules)


def _sync_error(group: Group, syncing: Syncing) -> ErrorCode:
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if error := member_error(group, syncing.member_id, syncing.instance_id, syncing.generation):
        return error
    if syncing.protocol_type not in (None, group.protocol_type):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if syncing.protocol_name not in (None, group.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.REBALANCE_IN_PROGRESS if group.state is GroupState.PREPARING_REBALANCE else ErrorCode.NONE


def _take_assignment(group: Group, assignments: Mapping[str, bytes], rules: GroupRules) -> Decision:
    generation = group.assigning = group.generation
    stored = yield StoreGroup(group.to_record(assignments))
    if group.assigning == generation:
        group.assigning = NO_GENERATION
    if group.state is not GroupState.COMPLETING_REBALANCE or group.generation != generation:
        return
    yield from _hand_out(group, assignments, stored.error, stored.now)
    if stored.error:
        group.because(f"the assignment could not be stored ({stored.error.name})")
        yield from _maybe_prepare(group, rules, stored.now)
    else:
        group.move_to(GroupState.STABLE, stored.now)


def _hand_out(group: Group, assignments: Mapping[str, bytes], error: ErrorCode, now: Moment) -> Decision:
    """Send each waiting member its assignment; with an error, none."""
    for member in group.members.values():
        member.assignment = assignments.get(member.id, b"") if not error else b""
        if (waiter := group.waiting_to_sync.pop(member.id, None)) is not None:
            group.expect_heartbeat(member, now)
            yield Reply(waiter, SyncAnswer(error) if error else _synced(group, member))


def _synced(group: Group, member: Member) -> SyncAnswer:
    return SyncAnswer(ErrorCode.NONE, member.assignment, group.protocol_type, group.protocol_name)


# ---- leaving, by request or by timeout


def leave(
    group: Group, member_id: str, instance_id: str | None, reason: str | None, rules: GroupRules, now: Moment
) -> Generator[Effect, Stored, ErrorCode]:
    """Remove members; a static one may be named by its instance id alone."""
    if not member_id and instance_id is not None:
        member_id = group.static_members.get(instance_id, "")
    if member_id in group.pending_members:
        group.remove(member_id)
        yield from _maybe_complete_join(group, now)
        return ErrorCode.NONE
    if error := member_error(group, member_id, instance_id):
        return error
    group.because(f"{group.members[member_id]} left", reason)
    yield from _remove(group, member_id, rules, now)
    return ErrorCode.NONE


def expire(group: Group, rules: GroupRules, now: Moment) -> Decision:
    """Remove all members whose time is up. A group that this broker has unloaded may still have a timer, without
    effect."""
    if group.state is GroupState.DEAD:
        return
    now_ms = now.monotonic_ms
    for member_id in [id for id, deadline_ms in group.pending_members.items() if deadline_ms <= now_ms]:
        group.remove(member_id)
    for member in group.silent_members(now_ms):
        if member.id in group.members:
            group.because(f"{member} was silent for {member.session_timeout_ms} ms")
            yield from _remove(group, member.id, rules, now)
    yield from _maybe_complete_join(group, now)
    if group.join_deadline_ms <= now_ms:
        yield from _join_time_is_up(group, rules, now)
    if group.sync_deadline_ms <= now_ms:
        for member_id in list(group.pending_sync):
            group.because(f"{group.members[member_id]} did not fetch its part in time")
            yield from _remove(group, member_id, rules, now)
    group.set_wake()


def _remove(group: Group, member_id: str, rules: GroupRules, now: Moment) -> Decision:
    yield from _dismiss(group, member_id, ErrorCode.UNKNOWN_MEMBER_ID)
    group.remove(member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        yield from _maybe_complete_join(group, now)
    elif group.state is not GroupState.EMPTY:
        yield from _maybe_prepare(group, rules, now)


def _dismiss(group: Group, member_id: str, error: ErrorCode, *, answered_id: str = "") -> Decision:
    """Answer the pending requests of this member."""
    if (join_waiter := group.waiting_to_join.pop(member_id, None)) is not None:
        yield _refused(join_waiter, answered_id, error)
    if (sync_waiter := group.waiting_to_sync.pop(member_id, None)) is not None:
        yield Reply(sync_waiter, SyncAnswer(error))


# ---- load and unload


def after_load(group: Group, rules: GroupRules, now: Moment) -> Decision:
    if len(group.members) > rules.max_size:
        group.because(f"it has more members than group.max.size={rules.max_size} allows")
        yield from _maybe_prepare(group, rules, now)


def unload(group: Group, now: Moment) -> Decision:
    group.move_to(GroupState.DEAD, now)
    group.wake_ms = NEVER_MS
    for member_id in group.members:
        yield from _dismiss(group, member_id, ErrorCode.NOT_COORDINATOR, answered_id=member_id)
