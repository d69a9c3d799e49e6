"""Base of the members of both ZooKeeper designs: a session, a registration, one thread that reacts to watches, and
reading.

Reading happens on the caller's thread, in `poll`; everything about the group on the member's own. A member that loses
its connection to ZooKeeper continues reading, as Kafka's did: it learns the end of its session, and of its ownership,
only after the reconnection.
"""

import re
import socket
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from kazoo.exceptions import KazooException

from odradek.apps.legacy.core.znodes import STREAMS_MAX, Registration, checked_name
from odradek.apps.legacy.group_tree import GroupTree
from odradek.apps.legacy.leader_reader import LeaderReader
from odradek.apps.legacy.observer import Observer, Tally, What
from odradek.apps.legacy.owned_partitions import OwnedPartitions
from odradek.base.clock import SYSTEM_CLOCK, Clock
from odradek.base.errors import ConfigError, FatalError
from odradek.base.logs import get_logger
from odradek.broker.zk.session import SessionEvent, ZkSession, ZkUnavailable
from odradek.broker.zk.znodes import CorruptZnode
from odradek.client.record_reader import Fetched
from odradek.model.topic_names import check_topic_name
from odradek.model.topology import Endpoint, TopicPartition
from odradek.protocol.messages.list_offsets import LATEST

log = get_logger(__name__)

ZOOKEEPER_ERRORS = (ZkUnavailable, KazooException, CorruptZnode)
_REGISTER_AGAIN_S = 0.1
_REACT_AGAIN_S = 0.5
_STOP_S_MAX = 30.0


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """Names and defaults are those of Kafka 0.8's consumer, dots as underscores."""

    zookeeper_session_timeout_ms: int = 6000
    zookeeper_connection_timeout_ms: int = 6000
    rebalance_max_retries: int = 4
    rebalance_backoff_ms: int = 2000
    auto_commit_enable: bool = True
    auto_commit_interval_ms: int = 60_000
    auto_offset_reset: int = LATEST
    fetch_wait_max_ms: int = 100


@dataclass(slots=True)
class _News:
    """Changes since the member last looked."""

    changed: dict[str, None] = field(default_factory=dict)
    session_renewed: bool = False


def new_member_id(group: str) -> str:
    host = re.sub(r"[^a-zA-Z0-9._-]", "-", socket.gethostname())
    return f"{group}_{host}-{time.time_ns() // 1_000_000}-{uuid.uuid4().hex[:8]}"


class Member(ABC):
    """Member of a group. As a context, it is in the group inside of it."""

    def __init__(
        self,
        zookeeper: str,
        group: str,
        topics: Mapping[str, int] | Sequence[str],
        *,
        settings: MemberSettings | None = None,
        member_id: str | None = None,
        observer: Observer | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """`topics` may have the number of streams of each topic; one otherwise."""
        self.group = checked_name("group", group)
        self.id = checked_name("member id", member_id or new_member_id(group))
        self.settings = settings or MemberSettings()
        self.observer: Observer = observer or Tally()
        self.registration = Registration(dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, 1))
        for topic, count in self.registration.subscription.items():
            check_topic_name(topic)
            if not 1 <= count <= STREAMS_MAX:
                raise ConfigError(f"{count} is not a number of streams of {topic}: 1 to {STREAMS_MAX}")
        self.owned_partitions = OwnedPartitions()
        self._clock = clock
        self._session = ZkSession(
            zookeeper,
            session_timeout_ms=self.settings.zookeeper_session_timeout_ms,
            connection_timeout_ms=self.settings.zookeeper_connection_timeout_ms,
            listener=self._on_session,
            on_znode=self._on_znode,
        )
        self.tree = GroupTree(group, self._session, self.observer)
        self._brokers: Mapping[int, Endpoint] = {}
        self._reader = LeaderReader(self._known_brokers, self.id, self.observer)
        self._something_new = threading.Condition()
        self._news = _News()
        self._stopping = threading.Event()
        self._abandoned = False
        self._thread = threading.Thread(target=self._live, name=f"member {self.id}", daemon=True)
        self._committed_at_ms = clock.monotonic_ms()

    # ---- methods for users

    def start(self) -> None:
        self._session.start()
        self.tree.prepare(self.registration.subscription)
        self._register()
        self._thread.start()

    def poll(self, timeout_ms: int | None = None) -> list[Fetched]:
        """Return the records that have arrived in the member's partitions; they count as read when this returns."""
        wait_ms = self.settings.fetch_wait_max_ms if timeout_ms is None else timeout_ms
        deadline_ms = self._clock.monotonic_ms() + wait_ms
        with self.owned_partitions.reading(wait_ms / 1000) as positions:
            fetched = self._fetch(positions, wait_ms) if positions else []
        if not fetched:
            self._stopping.wait(max(0, deadline_ms - self._clock.monotonic_ms()) / 1000)
        if self.settings.auto_commit_enable and self._commit_is_due():
            self._commit_if_possible()
        return fetched

    def commit(self) -> None:
        self._committed_at_ms = self._clock.monotonic_ms()
        self.tree.commit(self.owned_partitions.positions())

    @property
    def owned(self) -> frozenset[TopicPartition]:
        return self.owned_partitions.partitions

    def close(self) -> None:
        """Leave the group; its partitions are free at once."""
        self._stop_thread()
        try:
            if not self._abandoned:
                self._leave()
        except ZOOKEEPER_ERRORS as error:
            log.warning("member leaves without saying so", member=self.id, error=str(error))
        self._session.close()
        self._reader.close()

    def abandon(self) -> None:
        """End the member without notice, as a crash would; its session goes when it expires, or is closed."""
        self._abandoned = True
        self._stop_thread()
        self._stop_reading()
        self._reader.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- methods that differ between the designs

    @abstractmethod
    def _join(self) -> None:
        """Called after each registration: set the watches, and get partitions."""

    @abstractmethod
    def _react(self, changed: Collection[str]) -> None:
        """React to changes of these watched nodes."""

    def _leave(self) -> None:
        stopped = self._stop_reading()
        if self.settings.auto_commit_enable:
            self.tree.commit(stopped)

    # ---- for the designs

    def _begin_reading(self, partitions: Collection[TopicPartition], offsets: Mapping[TopicPartition, int]) -> None:
        self.owned_partitions.add({tp: offsets.get(tp) for tp in partitions})
        if partitions:
            self.observer.happened(self.id, What.OWNS, partitions)

    def _stop_reading(self, partitions: Collection[TopicPartition] | None = None) -> dict[TopicPartition, int]:
        held = self.owned if partitions is None else self.owned & frozenset(partitions)
        stopped = self.owned_partitions.take_away(held)
        if held:
            self.observer.happened(self.id, What.RELEASED, held)
        return stopped

    # ---- the member's thread

    def _live(self) -> None:
        joined = False
        while not self._stopping.is_set():
            news = self._await_news() if joined else _News()
            try:
                if news.session_renewed:
                    self._stop_reading()
                    self._register()
                if news.session_renewed or not joined:
                    self._join()
                    joined = True
                elif news.changed:
                    self._react(news.changed)
            except FatalError as error:
                log.error("member is out of its group", member=self.id, error=str(error))
                return
            except ZOOKEEPER_ERRORS as error:
                log.info("member could not follow its group", member=self.id, error=str(error))
                self._restore(news)
                self._stopping.wait(_REACT_AGAIN_S)

    def _await_news(self) -> _News:
        with self._something_new:
            self._something_new.wait_for(lambda: self._has_news() or self._stopping.is_set())
            news, self._news = self._news, _News()
            return news

    def _has_news(self) -> bool:
        return bool(self._news.changed) or self._news.session_renewed

    def _restore(self, news: _News) -> None:
        with self._something_new:
            self._news.changed |= news.changed
            self._news.session_renewed |= news.session_renewed

    def _await_changes(self, deadline: float) -> list[str]:
        """Return the changes; none at the timeout, or when the member stops."""
        with self._something_new:
            self._something_new.wait_for(
                lambda: self._news.changed or self._stopping.is_set(), max(0.0, deadline - time.monotonic())
            )
            changed, self._news.changed = list(self._news.changed), {}
            return [] if self._stopping.is_set() else changed

    def _on_znode(self, path: str) -> None:
        self.observer.happened(self.id, What.NOTIFIED)
        with self._something_new:
            self._news.changed[path] = None
            self._something_new.notify_all()

    def _on_session(self, event: SessionEvent) -> None:
        if event is SessionEvent.SESSION_RENEWED:
            with self._something_new:
                self._news.session_renewed = True
                self._something_new.notify_all()

    def _stop_thread(self) -> None:
        self._stopping.set()
        with self._something_new:
            self._something_new.notify_all()
        if self._thread.ident is not None:
            self._thread.join(_STOP_S_MAX)

    def _register(self) -> None:
        """Register. A node of an earlier session with the same name is removed when that session expires."""
        deadline_ms = self._clock.monotonic_ms() + 2 * self.settings.zookeeper_session_timeout_ms
        while not self.tree.register(self.id, self.registration, self._clock.now_ms()):
            if self._clock.monotonic_ms() > deadline_ms:
                raise FatalError(f"group {self.group} has another member {self.id}: choose another id")
            if self._stopping.wait(_REGISTER_AGAIN_S):
                return

    # ---- reading

    def _fetch(self, positions: dict[TopicPartition, int | None], wait_ms: int) -> list[Fetched]:
        if unknown := [tp for tp, position in positions.items() if position is None]:
            positions.update(self._reader.boundaries(unknown, self.settings.auto_offset_reset))
        known = {tp: position for tp, position in positions.items() if position is not None}
        fetched, lost = self._reader.fetch(known, wait_ms) if known else ([], [])
        for tp in lost:
            log.warning("the log doesn't have the position", member=self.id, partition=str(tp), position=known[tp])
            positions[tp] = None
        positions.update({item.tp: item.next_offset for item in fetched})
        return fetched

    def _known_brokers(self) -> Mapping[int, Endpoint]:
        """Return the live brokers; without ZooKeeper, the last known ones."""
        try:
            self._brokers = self.tree.brokers()
        except ZOOKEEPER_ERRORS as error:
            log.info("member can't look for brokers", member=self.id, error=str(error))
        return self._brokers

    def _commit_if_possible(self) -> None:
        try:
            self.commit()
        except ZOOKEEPER_ERRORS as error:
            log.warning("member could not commit", member=self.id, error=str(error))

    def _commit_is_due(self) -> bool:
        return self._clock.monotonic_ms() - self._committed_at_ms >= self.settings.auto_commit_interval_ms
