"""A member of design three: it finds the group's coordinator, joins, syncs and sends heartbeats.

Eager, with the range assignor, as Kafka's consumer does by default. It reads nothing: what is measured is who may. A
member that can't reach its coordinator stops by itself when its session must be over, counted from the last heartbeat
that was answered.
"""

import threading
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from struct import Struct
from typing import Any

from odradek.apps.legacy.core.range_assignment import assign, member_of
from odradek.apps.legacy.core.znodes import Registration
from odradek.apps.legacy.observer import Observer, What
from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.broker_client import BrokerClient, ConnectionFailed
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from odradek.protocol.messages.consumer_protocol_assignment import TopicPartition as AssignedTopic
from odradek.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from odradek.protocol.schema import Request

_VERSION = Struct(">h")
_REBALANCE_MS = 60_000
_TIMEOUT_MS = _REBALANCE_MS + 10_000
_BACKOFF_S = 0.2


class JoinedConsumer:
    def __init__(
        self,
        bootstrap: Sequence[tuple[str, int]],
        group: str,
        topic: str,
        partitions: Collection[int],
        *,
        name: str,
        session_timeout_ms: int,
        observer: Observer,
    ) -> None:
        self.id = name
        self._bootstrap = bootstrap
        self._group = group
        self._topic = topic
        self._partitions = partitions
        self._session_s = session_timeout_ms / 1000
        self._observer = observer
        self._connection: BrokerClient | None = None
        self._member_id = ""
        self._generation = -1
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
            self._ask(LeaveGroupRequest(group_id=self._group, members=[MemberIdentity(member_id=self._member_id)]))
        self._disconnect()

    def crash(self) -> None:
        self._stop()
        self._disconnect()

    def cut(self) -> None:
        """Cut the member off from its coordinator."""
        self._is_cut.set()

    def mend(self) -> None:
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
                elif self._generation < 0:
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
        answer = self._ask(
            HeartbeatRequest(group_id=self._group, generation_id=self._generation, member_id=self._member_id)
        )
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            self._answered_at = sent_at
        elif code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID):
            self._rejoin(code)
        else:
            raise KafkaError(code)

    def _rejoin(self, why: ErrorCode) -> None:
        self._release()
        self._generation = -1
        if why is ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""

    def _join(self) -> None:
        joined = self._ask(self._join_request())
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
            joined = self._ask(self._join_request())
        code = ErrorCode(joined.error_code)
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self._rejoin(code)
            return
        if code is not ErrorCode.NONE:
            raise KafkaError(code)
        self._member_id = joined.member_id
        self._sync(joined)

    def _sync(self, joined: JoinGroupResponse) -> None:
        sent_at = time.monotonic()
        answer = self._ask(
            SyncGroupRequest(
                group_id=self._group,
                generation_id=joined.generation_id,
                member_id=self._member_id,
                protocol_type="consumer",
                protocol_name=joined.protocol_name,
                assignments=self._assignments(joined) if joined.leader == self._member_id else [],
            )
        )
        code = ErrorCode(answer.error_code)
        if code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID):
            self._rejoin(code)
            return
        if code is not ErrorCode.NONE:
            raise KafkaError(code)
        self._answered_at = sent_at
        self._generation = joined.generation_id
        self._owned = _decode(bytes(answer.assignment))
        if self._owned:
            self._observer.happened(self.id, What.OWNS, self._owned)

    def _join_request(self) -> JoinGroupRequest:
        subscription = _VERSION.pack(0) + ConsumerProtocolSubscription(topics=[self._topic]).encode(0)
        return JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=round(self._session_s * 1000),
            rebalance_timeout_ms=_REBALANCE_MS,
            member_id=self._member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
        )

    def _assignments(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        wanted = Registration({self._topic: 1})
        streams = assign({member.member_id: wanted for member in joined.members}, {self._topic: self._partitions})
        shares: dict[str, list[int]] = {member.member_id: [] for member in joined.members}
        for tp, stream in streams.items():
            shares[member_of(stream)].append(tp.partition)
        return [
            SyncGroupRequestAssignment(member_id=member, assignment=_encode(self._topic, numbers))
            for member, numbers in shares.items()
        ]

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


def _encode(topic: str, partitions: list[int]) -> bytes:
    assigned = [AssignedTopic(topic=topic, partitions=partitions)] if partitions else []
    return _VERSION.pack(0) + ConsumerProtocolAssignment(assigned_partitions=assigned).encode(0)


def _decode(assignment: bytes) -> frozenset[TopicPartition]:
    if not assignment:
        return frozenset()
    found = ConsumerProtocolAssignment.decode(memoryview(assignment), _VERSION.size, 0)[0].assigned_partitions
    return frozenset(TopicPartition(entry.topic, number) for entry in found for number in entry.partitions)
