"""The in-sync replicas: which replicas leave, which may join, and the change that a leader proposes. Pure.

A proposed change is pending until the controller has answered. Until then either set may be the valid one, so a record
is committed only when the replicas of both have it (KIP-497): `maximal` is their union.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from odradek.base.errors import ErrorCode
from odradek.base.value_classes import dataclass
from odradek.broker.replication.core.replica import RemoteReplica
from odradek.model.topology import TopicPartition

TAKEN_BACK = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
"""Answers after which the ISR is what it was before, and may be changed otherwise."""

REFUSED = TAKEN_BACK | {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
}
"""Answers that a retry wouldn't change. Except after those that revert the change, the leader's state is outdated: the
change stays pending until the next directive of the controller."""


@dataclass(frozen=True, slots=True)
class IsrChange:
    """The ISR that a leader asks for, under the state that it knows; fenced by both epochs."""

    partition: TopicPartition
    topic_id: UUID
    leader: int
    leader_epoch: int
    partition_epoch: int
    controller_epoch: int
    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]  # of the members of `isr`, in its order; -1: not known


def maximal(isr: Iterable[int], proposed: Iterable[int] = ()) -> frozenset[int]:
    return frozenset(isr) | frozenset(proposed)


def out_of_sync(
    in_isr: Iterable[int], followers: Mapping[int, RemoteReplica], *, leader_end: int, now_ms: int, max_lag_ms: int
) -> frozenset[int]:
    """The followers in the ISR that have not caught up for too long, or are no followers any more."""
    return frozenset(
        broker_id
        for broker_id in in_isr
        if (follower := followers.get(broker_id)) is None
        or not follower.is_caught_up(leader_end, now_ms=now_ms, max_lag_ms=max_lag_ms)
    )


def may_join(follower: RemoteReplica, *, high_watermark: int, epoch_start: int) -> bool:
    """Return whether the follower may join the ISR: it has all committed records, and the log up to the start of the
    leader's epoch."""
    return follower.log_end_offset >= high_watermark and follower.log_end_offset >= epoch_start
