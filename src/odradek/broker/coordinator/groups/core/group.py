"""One group: its state, its members, and the members that wait for an answer. Pure: no clock, no lock, no log.

`rebalance` decides; this module has the changes of a group's state that the decisions use. `wake_ms` is the
next time at which the group must be checked: a member's session may expire, or a rebalance time out.
"""

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from odradek.base.value_classes import dataclass
from odradek.broker.coordinator.groups.core.group_records import GroupMetadataValue, MemberMetadata
from odradek.broker.coordinator.groups.core.group_requests import (
    NO_GENERATION,
    JoinedMember,
    JoinWaiter,
    Moment,
    Protocols,
    Rebalanced,
    SyncWaiter,
)
from odradek.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from odradek.protocol.primitives import ProtocolError

CONSUMER_PROTOCOL: Final = "consumer"
NEVER_MS: Final = 2**62
CAUSES_MAX: Final = 8
_SAID_LENGTH_MAX: Final = 200


class GroupState(StrEnum):
    """States of a group, with the names that clients see."""

    EMPTY = "Empty"  # no members; may have offsets
    PREPARING_REBALANCE = "PreparingRebalance"  # waits for all members to join
    COMPLETING_REBALANCE = "CompletingRebalance"  # waits for the leader's assignment
    STABLE = "Stable"  # all members have their assignment
    DEAD = "Dead"  # deleted, or coordinated elsewhere by now


LEGAL_FROM: Mapping[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset({GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE}),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.DEAD: frozenset(GroupState),
}


class IllegalGroupMove(Exception):
    """The group can't move from its state to the next one. Nothing has changed."""


@dataclass(slots=True)
class Member:
    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False  # has not completed a rebalance yet: waiting for one doesn't keep it alive
    deadline_ms: int = NEVER_MS

    def __str__(self) -> str:
        static = "" if self.instance_id is None else f"{self.instance_id}, "
        return f"{self.client_id or self.id} ({static}{self.client_host.lstrip('/')})"[:_SAID_LENGTH_MAX]

    def subscription(self, protocol_name: str) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")


class Group:
    def __init__(self, group_id: str, now: Moment) -> None:
        self.id = group_id
        self.state = GroupState.EMPTY
        self.state_since_ms = now.wall_ms  # NO_TIMESTAMP: records of old versions lack it
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}  # instance id → member id
        self.pending_members: dict[
            str, int
        ] = {}  # members that were given an id and must join with it, with the time limit
        self.pending_sync: set[str] = set()  # of this generation, not heard of since
        self.waiting_to_join: dict[str, JoinWaiter] = {}
        self.waiting_to_sync: dict[str, SyncWaiter] = {}
        self.assigning = NO_GENERATION  # the generation whose assignment is on its way into the log
        self.subscribed_topics: frozenset[str] | None = None  # None: they can't be known
        self.join_deadline_ms = NEVER_MS
        self.sync_deadline_ms = NEVER_MS
        self.extensions_left_ms: int | None = None  # of the wait for the first members; None: not such a wait
        self.member_added = False  # during that wait
        self.wake_ms = NEVER_MS
        self._causes: list[str] = []  # of the next generation: the first few
        self._cause_count = 0
        self._supporters: Counter[str] = Counter()  # protocol → how many members can do it; one may name it twice

    # ---- states

    @property
    def can_rebalance(self) -> bool:
        return self.state in LEGAL_FROM[GroupState.PREPARING_REBALANCE]

    def move_to(self, state: GroupState, now: Moment) -> None:
        if self.state not in LEGAL_FROM[state]:
            raise IllegalGroupMove(f"group {self.id}: {self.state.value} → {state.value}")
        self.state = state
        self.state_since_ms = now.wall_ms

    def wake_by(self, deadline_ms: int) -> int:
        """Return the time of the next timeout."""
        self.wake_ms = min(self.wake_ms, deadline_ms)
        return deadline_ms

    # ---- reasons of rebalances

    def because(self, cause: str, said: str | None = None) -> None:
        """Note the reason of the next rebalance; perhaps with a client's own words."""
        self._cause_count += 1
        if len(self._causes) < CAUSES_MAX:
            self._causes.append(f"{cause}: {said[:_SAID_LENGTH_MAX]}" if said else cause)

    def rebalanced(self) -> Rebalanced:
        causes, left_out = tuple(self._causes), self._cause_count - len(self._causes)
        self._causes, self._cause_count = [], 0
        return Rebalanced(self.id, self.generation, len(self.members), causes, left_out)

    # ---- members

    def add(self, member: Member, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        self.members[member.id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.id
        self._supporters.update(_names(member.protocols))
        self.leader = self.leader or member.id
        self.pending_members.pop(member.id, None)

    def remove(self, member_id: str) -> None:
        """Remove the member. Its pending requests must have been answered."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._supporters.subtract(_names(member.protocols))
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.waiting_to_join.pop(member_id, None)
        self.waiting_to_sync.pop(member_id, None)
        self.pending_members.pop(member_id, None)
        self.forget_pending_sync(member_id)

    def update(self, member: Member, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int) -> None:
        self._supporters.subtract(_names(member.protocols))
        self._supporters.update(_names(protocols))
        member.protocols = protocols
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def rename(self, member: Member, member_id: str) -> None:
        """Give another id to a static member that has returned. It keeps its place and its assignment."""
        old_id = member.id
        self.members = {member_id if id == old_id else id: each for id, each in self.members.items()}
        member.id = member_id
        if self.leader == old_id:
            self.leader = member_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member_id
        if old_id in self.pending_sync:
            self.pending_sync.remove(old_id)
            self.pending_sync.add(member_id)

    def expect_heartbeat(self, member: Member, now: Moment) -> None:
        member.deadline_ms = self.wake_by(now.monotonic_ms + member.session_timeout_ms)

    def forget_pending_sync(self, member_id: str) -> None:
        self.pending_sync.discard(member_id)
        if not self.pending_sync:
            self.sync_deadline_ms = NEVER_MS

    @property
    def all_joined(self) -> bool:
        return len(self.waiting_to_join) == len(self.members) and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it joined, else elect the first member that joined. Return False if no member joined."""
        if self.leader in self.waiting_to_join:
            return True
        joined = next((id for id in self.members if id in self.waiting_to_join), None)
        if joined is None:
            return False
        self.leader = joined
        return True

    def silent_members(self, now_ms: int) -> list[Member]:
        """Return the members whose session has timed out. A member that waits for our answer is not silent, unless it
        has never been in a generation."""
        return [member for member in self.members.values() if self._deadline_of(member) <= now_ms]

    def _deadline_of(self, member: Member) -> int:
        waits = member.id in self.waiting_to_join or member.id in self.waiting_to_sync
        return NEVER_MS if waits and not member.is_new else member.deadline_ms

    def set_wake(self) -> None:
        """The earliest of all instants that the group waits for."""
        deadlines = [self.join_deadline_ms, self.sync_deadline_ms, *self.pending_members.values()]
        self.wake_ms = min([*deadlines, *map(self._deadline_of, self.members.values())])

    # ---- protocols

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether a member with these protocols may join: all members must have one in common."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type and protocols)
        size = len(self.members)
        return self.protocol_type == protocol_type and any(self._supporters[name] == size for name, _ in protocols)

    def select_protocol(self) -> str:
        """Select the protocol that most members prefer among the common ones."""
        size = len(self.members)
        votes = Counter(
            next(name for name, _ in member.protocols if self._supporters[name] == size)
            for member in self.members.values()
        )
        return votes.most_common(1)[0][0]

    def subscriptions(self) -> frozenset[str] | None:
        """The topics that the members of a consumer group read."""
        if self.protocol_type != CONSUMER_PROTOCOL or (self.members and self.protocol_name is None):
            return None
        topics: set[str] = set()
        for member in self.members.values():
            raw = member.subscription(self.protocol_name or "")
            try:
                # Every later version begins as version 0 does.
                topics.update(ConsumerProtocolSubscription.decode(memoryview(raw), 2, 0)[0].topics)
            except ProtocolError:
                return None
        return frozenset(topics)

    def next_generation(self, now: Moment) -> None:
        self.generation += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed_topics = self.subscriptions()
        self.move_to(GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, now)
        self.pending_sync.clear()

    def joined_members(self) -> list[JoinedMember]:
        protocol_name = self.protocol_name or ""
        return [
            JoinedMember(member.id, member.instance_id, member.subscription(protocol_name))
            for member in self.members.values()
        ]

    # ---- records

    def to_record(self, assignments: Mapping[str, bytes]) -> GroupMetadataValue:
        protocol_name = self.protocol_name or ""
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol_name,
            leader=self.leader,
            current_state_timestamp=self.state_since_ms,
            members=[
                MemberMetadata(
                    member_id=member.id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.subscription(protocol_name),
                    assignment=assignments.get(member.id, b""),
                )
                for member in self.members.values()
            ],
        )

    @classmethod
    def from_record(cls, group_id: str, value: GroupMetadataValue, now: Moment) -> "Group":
        """The group in a record: stable, or empty."""
        group = cls(group_id, now)
        for each in value.members:
            member = Member(
                each.member_id,
                each.group_instance_id,
                each.client_id,
                each.client_host,
                each.rebalance_timeout,
                each.session_timeout,
                ((value.protocol or "", each.subscription),),
                each.assignment,
            )
            group.add(member, value.protocol_type)
            group.expect_heartbeat(member, now)
        group.state = GroupState.STABLE if value.members else GroupState.EMPTY
        group.state_since_ms = value.current_state_timestamp
        group.generation = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol_name = value.protocol
        group.leader = value.leader
        group.subscribed_topics = group.subscriptions()
        return group


def _names(protocols: Protocols) -> set[str]:
    return {name for name, _ in protocols}
