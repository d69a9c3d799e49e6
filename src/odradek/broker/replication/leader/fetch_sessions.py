"""Incremental fetch sessions: a fetcher names its partitions once, then only what changed.

A session stores the partitions of one fetcher, and the last answer for each; the answer to an incremental fetch
contains only partitions with records or changes. Session id 0 means none; epoch 0 asks for a new one, -1 closes it, and
every further request must have the next epoch; otherwise the two sides are out of step.

The cache is bounded: a new session replaces one that was idle for at least `eviction_ms`; if there is none, the fetcher
gets no session. A follower's takes a consumer's place in any case, the smallest one's.
"""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import field

from odradek.base.clock import Clock
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.value_classes import dataclass
from odradek.broker.replication.leader.fetch_reader import FetchOutcome, FetchTarget
from odradek.protocol.messages.fetch import SESSION_EPOCH_MAX

SESSIONLESS = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1


@dataclass(slots=True)
class FetchSession:
    id: int
    by_topic_id: bool
    is_follower: bool = False
    epoch: int = 1  # what the next request must carry
    last_used_ms: int = 0
    partitions: OrderedDict[Hashable, FetchTarget] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)  # a client may ask again before it is answered

    def update(self, named: Iterable[tuple[Hashable, FetchTarget]], forgotten: Iterable[Hashable]) -> None:
        with self.lock:
            for key, target in named:
                known = self.partitions.get(key)
                if known is not None:
                    target.sent_high_watermark, target.sent_log_start = known.sent_high_watermark, known.sent_log_start
                    target.seen_in = known.seen_in
                self.partitions[key] = target
            for key in forgotten:
                self.partitions.pop(key, None)

    def targets(self) -> list[FetchTarget]:
        with self.lock:
            return list(self.partitions.values())

    def news(self, keyed: Iterable[tuple[Hashable, FetchOutcome]], *, full: bool) -> list[FetchOutcome]:
        """Return the changed partitions. Partitions that sent records go to the end, so that the others get
        their turn."""
        changed = []
        with self.lock:
            for key, outcome in keyed:
                known = self.partitions.get(key)
                if known is None:
                    continue
                if self._remember(known, outcome) or full:
                    changed.append(outcome)
                if outcome.size:
                    self.partitions.move_to_end(key)
        return changed

    @staticmethod
    def _remember(known: FetchTarget, outcome: FetchOutcome) -> bool:
        found = outcome.found
        if outcome.error or found is None:
            known.sent_high_watermark = -1  # the next answer counts as changed
            return True
        moved = known.sent_high_watermark != found.high_watermark or known.sent_log_start != found.log_start_offset
        known.sent_high_watermark, known.sent_log_start = found.high_watermark, found.log_start_offset
        return moved or outcome.size > 0 or outcome.diverging is not None or outcome.read_from >= 0


class FetchSessions:
    def __init__(self, slots: int, eviction_ms: int, clock: Clock) -> None:
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  # least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    def open(
        self, named: Sequence[tuple[Hashable, FetchTarget]], *, by_topic_id: bool, is_follower: bool = False
    ) -> FetchSession | None:
        """A new session for these partitions, or None when the cache is full of busier ones."""
        if not named:
            return None
        with self._lock:
            now_ms = self._clock.monotonic_ms()
            if len(self._sessions) >= self._slots and not self._evict(now_ms, for_follower=is_follower):
                return None
            session = FetchSession(self._unused_id(), by_topic_id, is_follower, last_used_ms=now_ms)
            session.update(named, ())
            self._sessions[session.id] = session
            return session

    def resume(self, session_id: int, epoch: int, *, by_topic_id: bool) -> FetchSession:
        """The session at the epoch that it expects."""
        with self._lock:
            session = self._sessions.get(session_id)
            if session is None:
                raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            if session.by_topic_id != by_topic_id:
                raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
            if session.epoch != epoch:
                raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
            session.epoch = 1 if epoch == SESSION_EPOCH_MAX else epoch + 1
            session.last_used_ms = self._clock.monotonic_ms()
            self._sessions.move_to_end(session_id)
            return session

    def close(self, session_id: int) -> None:
        with self._lock:
            self._sessions.pop(session_id, None)

    def _evict(self, now_ms: int, *, for_follower: bool) -> bool:
        leaving = next(iter(self._sessions.values()), None)
        if leaving is not None and now_ms - leaving.last_used_ms < self._eviction_ms:
            consumers = [session for session in self._sessions.values() if not session.is_follower]
            leaving = min(consumers, key=lambda s: len(s.partitions), default=None) if for_follower else None
        if leaving is None:
            return False
        del self._sessions[leaving.id]
        return True

    def _unused_id(self) -> int:
        while True:
            session_id = 1 + secrets.randbelow(SESSION_EPOCH_MAX)
            if session_id not in self._sessions:
                return session_id
