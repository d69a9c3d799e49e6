"""Truncation point of a follower: its log agrees with its leader's below it. Arithmetic on epochs and offsets only.

The high watermark is not used: a follower's own is behind the leader's, so truncating to it would drop committed
records.
"""

from odradek.base.value_classes import dataclass

UNDEFINED = -1


@dataclass(frozen=True, slots=True)
class Cut:
    """Truncate the log to the offset. If it is not final, the leader must be asked again with the new last epoch."""

    offset: int
    is_final: bool = True


@dataclass(frozen=True, slots=True)
class StartOver:
    """Drop the whole log and start over, empty, at the offset."""

    offset: int


def cut_by_epoch(leader: tuple[int, int], own: tuple[int, int], log_end_offset: int) -> Cut:
    """Return the offset where the logs diverge.

    `leader` is the largest epoch that the leader knows, not above the follower's last, and where it ended there; `own`
    is the follower's answer to the same question about that epoch. Either may be undefined (-1).

    An epoch that only the leader has means that the follower's later ones never happened. It keeps its records of older
    epochs, and asks about the last of those.
    """
    (leader_epoch, leader_end), (own_epoch, own_end) = leader, own
    if leader_end == UNDEFINED:
        return Cut(log_end_offset)
    if leader_epoch == UNDEFINED or own_end == UNDEFINED:
        return Cut(min(leader_end, log_end_offset))
    if own_epoch != leader_epoch:
        return Cut(min(own_end, log_end_offset), is_final=False)
    return Cut(min(own_end, leader_end, log_end_offset))


def after_out_of_range(log_end_offset: int, leader_start: int, leader_end: int) -> Cut | StartOver | None:
    """Return the step after OFFSET_OUT_OF_RANGE; None if the leader has the end of the follower's log by now.

    A shorter leader was elected uncleanly. A leader that begins later has deleted the missing records.
    """
    if leader_end < log_end_offset:
        return Cut(leader_end)
    if leader_start > log_end_offset:
        return StartOver(leader_start)
    return None
