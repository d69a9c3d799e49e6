"""Arithmetic of the high watermark. Pure."""

from collections.abc import Callable, Container, Iterable

from odradek.broker.replication.core.replica import RemoteReplica


def high_watermark(
    current: int,
    leader_end: int,
    followers: Iterable[RemoteReplica],
    in_sync: Container[int],
    *,
    is_joining: Callable[[RemoteReplica], bool],
) -> int:
    """Return the high watermark: the offset up to which the whole ISR has the log; it never falls.

    A follower that has caught up and is about to join is waited for as well: if the watermark ran away from it, it
    would never reach it.
    """
    reached = leader_end
    for follower in followers:
        if follower.log_end_offset < reached and (follower.broker_id in in_sync or is_joining(follower)):
            reached = follower.log_end_offset
    return max(current, reached)
