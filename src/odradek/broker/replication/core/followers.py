"""A leader's followers, and which of the replicas are in sync. Owned by the partition, written under its lock.

isr      what the controller has confirmed; the leader is in it
maximal  the same with what a pending change would add: all of these must have a record before it is committed
"""

from collections.abc import Callable

from odradek.base.value_classes import dataclass
from odradek.broker.replication.core.high_watermark import high_watermark
from odradek.broker.replication.core.isr import IsrChange, maximal, may_join, out_of_sync
from odradek.broker.replication.core.replica import RemoteReplica
from odradek.model.topology import PartitionDirective


@dataclass(frozen=True, slots=True)
class LagRules:
    """Rules of lag: the longest time behind the leader's end, and liveness of the broker."""

    max_lag_ms: int
    is_alive: Callable[[int], bool]


class Followers:
    __slots__ = ("_broker_id", "_rules", "by_id", "isr", "maximal", "pending")

    def __init__(self, broker_id: int, rules: LagRules) -> None:
        self._broker_id = broker_id
        self._rules = rules
        self.by_id: dict[int, RemoteReplica] = {}
        self.isr: tuple[int, ...] = ()
        self.maximal: frozenset[int] = frozenset()
        self.pending: IsrChange | None = None

    # ---- leadership begins and ends

    def lead(self, directive: PartitionDirective, *, new_leader: bool, leader_end: int, now_ms: int) -> None:
        isr, known = directive.state.isr, self.by_id
        self.by_id = {r: known.get(r) or RemoteReplica(r) for r in directive.replicas if r != self._broker_id}
        for follower in self.by_id.values():
            in_sync = follower.broker_id in isr
            follower.start_epoch(new_leader=new_leader, leader_end=leader_end, in_sync=in_sync, now_ms=now_ms)
        self.confirm(isr)

    def leave(self) -> None:
        self.by_id = {}
        self.confirm(())

    # ---- the ISR

    def confirm(self, isr: tuple[int, ...]) -> None:
        """Set the ISR as confirmed; no change is pending."""
        self.isr = isr
        self.maximal = maximal(isr)
        self.pending = None

    def propose(self, change: IsrChange) -> IsrChange:
        self.pending = change
        self.maximal = maximal(self.isr, change.isr)
        return change

    def expanded(self, follower: RemoteReplica, *, high_watermark: int, epoch_start: int) -> tuple[int, ...] | None:
        """Return the ISR with a follower added; None if it may not join, or a change is pending."""
        if self.pending is not None or not self._rules.is_alive(follower.broker_id):
            return None
        if not may_join(follower, high_watermark=high_watermark, epoch_start=epoch_start):
            return None
        return *self.isr, follower.broker_id

    def shrunk(self, *, leader_end: int, now_ms: int) -> tuple[int, ...] | None:
        """Return the ISR without lagging followers, if there are any, and no change is pending."""
        others = [broker_id for broker_id in self.isr if broker_id != self._broker_id]
        if self.pending is not None or not others:
            return None
        max_lag_ms = self._rules.max_lag_ms
        lagging = out_of_sync(others, self.by_id, leader_end=leader_end, now_ms=now_ms, max_lag_ms=max_lag_ms)
        return tuple(r for r in self.isr if r not in lagging) if lagging else None

    def broker_epochs(self, isr: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.by_id[r].broker_epoch if r in self.by_id else -1 for r in isr)

    def min_isr(self, configured: int) -> int:
        """Return min.insync.replicas, at most the number of replicas."""
        return min(configured, len(self.by_id) + 1)

    # ---- positions

    def high_watermark(self, current: int, leader_end: int, now_ms: int) -> int:
        rules = self._rules

        def is_joining(follower: RemoteReplica) -> bool:
            caught_up = follower.is_caught_up(leader_end, now_ms=now_ms, max_lag_ms=rules.max_lag_ms)
            return caught_up and rules.is_alive(follower.broker_id)

        return high_watermark(current, leader_end, self.by_id.values(), self.maximal, is_joining=is_joining)

    def low_watermark(self, leader_start: int) -> int:
        """The least log start of the live replicas."""
        alive = (f.log_start_offset for f in self.by_id.values() if self._rules.is_alive(f.broker_id))
        return min((leader_start, *alive))
