"""A member of design three: it finds the group's coordinator, joins, syncs and sends heartbeats.

It reads nothing: the experiment measures which member may read. A
member that can't reach its coordinator stops by itself when its session must be over, counted from the last heartbeat
that was answered.
"""

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from odradek.apps.legacy.observer import Observer, What
from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.client.group_member import GroupMember
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.schema import Request

_REBALANCE_MS = 60_000
_TIMEOUT_MS = _REBALANCE_MS + 10_000
_BACKOFF_S = 0.2


class JoinedConsumer:
    def __init__(
        self,
        bootstrap: Sequence[tuple[str, int]],
        group: str,
        topic: str,
        partitions: int,
        *,
        name: str,
        session_timeout_ms: int,
        observer: Observer,
    ) -> None:
        self.id = name
        self._bootstrap = bootstrap
        self._group = group
        self._partitions = partitions
        self._session_s = session_timeout_ms / 1000
        self._observer = observer
        self._connection: BrokerClient | None = None
        self._member = GroupMember(
            group, [topic], session_timeout_ms=session_timeout_ms, rebalance_timeout_ms=_REBALANCE_MS
        )
        self._owned: frozenset[TopicPartition] = frozenset()
        self._answered_at = time.monotonic()
        self._stopping = threading.Event()
        self._is_cut = threading.Event()
        self._thread = threading.Thread(target=self._live, name=f"member {name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Leaves the group."""
        self._stop()
        with suppress(KafkaError, ConnectionFailed):
            self._ask(self._member.leave_request())
        self._disconnect()

    def crash(self) -> None:
        self._stop()
        self._disconnect()

    def cut(self) -> None:
        """Cut the member off from its coordinator."""
        self._is_cut.set()

    def heal(self) -> None:
        self._is_cut.clear()

    def halt(self) -> None:
        self.crash()

    def end(self) -> None:
        """Release everything."""

    # ---- its thread

    def _live(self) -> None:
        while not self._stopping.is_set():
            try:
                if self._is_cut.is_set():
                    self._wait_for_the_end_of_the_session()
                elif not self._member.is_joined:
                    self._join()
                else:
                    self._stopping.wait(self._session_s / 3)
                    if not self._stopping.is_set() and not self._is_cut.is_set():
                        self._heartbeat()
            except (KafkaError, ConnectionFailed):
                self._disconnect()
                self._stopping.wait(_BACKOFF_S)

    def _wait_for_the_end_of_the_session(self) -> None:
        left_s = self._answered_at + self._session_s - time.monotonic()
        if left_s <= 0:
            self._release()
        self._stopping.wait(min(left_s, _BACKOFF_S) if left_s > 0 else _BACKOFF_S)

    def _heartbeat(self) -> None:
        sent_at = time.monotonic()
        self._member.take_heartbeat(self._ask(self._member.heartbeat_request()))
        if self._member.is_joined:
            self._answered_at = sent_at
        else:
            self._release()

    def _join(self) -> None:
        """One attempt, with a second request where the first is answered with the member's id."""
        had_id = bool(self._member.id)
        joined = self._ask(self._member.join_request())
        may_sync = self._member.take_join(joined)
        if not may_sync and not had_id and self._member.id:
            joined = self._ask(self._member.join_request())
            may_sync = self._member.take_join(joined)
        if may_sync:
            self._sync(joined)
        else:
            self._release()

    def _sync(self, joined: JoinGroupResponse) -> None:
        sent_at = time.monotonic()
        answer = self._ask(self._member.sync_request(joined, lambda topics: dict.fromkeys(topics, self._partitions)))
        assigned = self._member.take_sync(joined, answer)
        if assigned is None:
            self._release()
            return
        self._answered_at = sent_at
        self._owned = frozenset(assigned)
        if self._owned:
            self._observer.happened(self.id, What.OWNS, self._owned)

    def _release(self) -> None:
        owned, self._owned = self._owned, frozenset()
        if owned:
            self._observer.happened(self.id, What.RELEASED, owned)

    # ---- the wire

    def _ask(self, request: Request) -> Any:
        if self._connection is None:
            self._connection = BrokerClient(*self._find_coordinator(), self.id, _TIMEOUT_MS)
        self._observer.asked_broker()
        return self._connection.send(request)

    def _find_coordinator(self) -> tuple[str, int]:
        failure: Exception | None = None
        for address in self._bootstrap:
            try:
                with BrokerClient(*address, self.id, _TIMEOUT_MS) as client:
                    self._observer.asked_broker()
                    (found,) = client.send(FindCoordinatorRequest(coordinator_keys=[self._group])).coordinators
            except ConnectionFailed as error:
                failure = error
                continue
            if found.error_code:
                raise KafkaError(ErrorCode(found.error_code))
            return found.host, found.port
        raise failure or KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _stop(self) -> None:
        self._stopping.set()
        while self._thread.is_alive():
            # again and again: the thread may just be about to wait for an answer
            if (connection := self._connection) is not None:
                connection.abort()
            self._thread.join(_BACKOFF_S)
        self._release()
        self._disconnect()
