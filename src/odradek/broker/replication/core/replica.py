"""Follower as its leader sees it: the end of its log, and the time since which it has kept up.

The leader learns both from the follower's fetches: a follower that fetches an offset has everything before it. Owned by
the partition, written under its lock. Times are monotonic.
"""

NEVER_MS = -(2**62)
UNKNOWN_OFFSET = -1


class RemoteReplica:
    __slots__ = (
        "broker_epoch",
        "broker_id",
        "last_caught_up_ms",
        "last_fetch_leader_end",
        "last_fetch_ms",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.last_caught_up_ms = NEVER_MS
        self.last_fetch_ms = NEVER_MS
        self.last_fetch_leader_end = UNKNOWN_OFFSET  # end of the leader's log at its last fetch
        self.broker_epoch = -1  # of the registration under which it fetches, if it names it

    def start_epoch(self, *, new_leader: bool, leader_end: int, in_sync: bool, now_ms: int) -> None:
        """A leader epoch begins. A new leader knows nothing yet; nor does one that was not told of an epoch in between,
        in which the followers may have cut their logs to another leader's. A re-elected one keeps what it knows.

        A follower outside the ISR counts as never caught up, so that it holds nothing back before it has fetched.
        """
        self.last_caught_up_ms = now_ms if in_sync else NEVER_MS
        if new_leader:
            self.log_end_offset = self.log_start_offset = self.last_fetch_leader_end = UNKNOWN_OFFSET
            self.last_fetch_ms = NEVER_MS
            self.broker_epoch = -1
        else:
            self.last_fetch_leader_end = leader_end
            self.last_fetch_ms = now_ms if in_sync else NEVER_MS

    def record_fetch(self, offset: int, log_start_offset: int, *, leader_end: int, now_ms: int) -> None:
        """Note a fetch from the offset on, while the leader's log ends at `leader_end`.

        A follower that reached the end that the leader had at its last fetch was caught up at that time: under steady
        writes no follower ever reaches the current end.
        """
        if offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif offset >= self.last_fetch_leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.last_fetch_leader_end = max(leader_end, self.last_fetch_leader_end)
        self.last_fetch_ms = now_ms

    def is_at(self, offset: int, log_start_offset: int) -> bool:
        return self.log_end_offset == offset and self.log_start_offset == log_start_offset

    def fetched_nothing_new(self, now_ms: int, broker_epoch: int) -> None:
        """Record a fetch at the end of the leader's log, where the follower was before. It may have registered anew."""
        self.last_caught_up_ms = self.last_fetch_ms = now_ms
        self.broker_epoch = broker_epoch

    def is_caught_up(self, leader_end: int, *, now_ms: int, max_lag_ms: int) -> bool:
        return self.log_end_offset == leader_end or now_ms - self.last_caught_up_ms <= max_lag_ms
