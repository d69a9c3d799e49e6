"""Requests to a group, its answers, and its effects. Values only."""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from odradek.base.errors import ErrorCode
from odradek.base.value_classes import dataclass
from odradek.broker.coordinator.groups.core.group_records import GroupMetadataValue

NO_GENERATION: Final = -1


class Moment(NamedTuple):
    """Current time by both clocks: records need the wall clock, timeouts the monotonic one."""

    wall_ms: int
    monotonic_ms: int


Protocols: TypeAlias = tuple[tuple[str, bytes], ...]
"""The assignors of a member, best first, each with the member's metadata for it."""


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """A member as its group's leader sees it."""

    member_id: str
    instance_id: str | None
    subscription: bytes


@dataclass(frozen=True, slots=True)
class JoinAnswer:
    error: ErrorCode
    member_id: str
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: Sequence[JoinedMember] = ()


@dataclass(frozen=True, slots=True)
class SyncAnswer:
    error: ErrorCode
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol_name: str | None = None


JoinWaiter: TypeAlias = Callable[[JoinAnswer], None]
SyncWaiter: TypeAlias = Callable[[SyncAnswer], None]
AnswerT = TypeVar("AnswerT", JoinAnswer, SyncAnswer)


@dataclass(frozen=True, slots=True)
class Reply(Generic[AnswerT]):
    """An effect: the answer to a request that waited. Never sent under the group's lock."""

    to: Callable[[AnswerT], None]
    answer: AnswerT

    def send(self) -> None:
        self.to(self.answer)


@dataclass(frozen=True, slots=True)
class GroupRules:
    session_timeout_min_ms: int
    session_timeout_max_ms: int
    max_size: int
    initial_rebalance_delay_ms: int


@dataclass(frozen=True, slots=True)
class StoreGroup:
    """An effect: the group's record, to be replicated before any answer depends on it. Its result is an error code.

    Other decisions may be made before the result arrives: a decision that waited must check the group again.
    """

    value: GroupMetadataValue


@dataclass(frozen=True, slots=True)
class NoteGroup:
    """An effect: write the group's record, without a waiting request."""

    value: GroupMetadataValue


@dataclass(frozen=True, slots=True)
class Rebalanced:
    """An effect: the group has its next generation; with the reasons. Never reported under the group's lock."""

    group_id: str
    generation: int
    members: int
    causes: tuple[str, ...]
    causes_left_out: int


@dataclass(frozen=True, slots=True)
class Stored:
    """Result of a record's write, and its time."""

    error: ErrorCode
    now: Moment


Effect: TypeAlias = Reply[JoinAnswer] | Reply[SyncAnswer] | StoreGroup | NoteGroup | Rebalanced
Decision: TypeAlias = Generator[Effect, Stored, None]


@dataclass(frozen=True, slots=True)
class Joining:
    """A request to join. `fresh_id` is the id of a member that has none yet."""

    member_id: str
    fresh_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    needs_known_id: bool = (
        False  # has to join again with the id that it is given, so that a lost answer leaves no unknown member
    )
    may_skip_assignment: bool = False
    reason: str | None = None  # in the client's words


@dataclass(frozen=True, slots=True)
class Syncing:
    member_id: str
    instance_id: str | None
    generation: int
    assignments: Mapping[str, bytes]
    protocol_type: str | None = None
    protocol_name: str | None = None
