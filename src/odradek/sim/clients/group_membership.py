"""Membership of a consumer group by the classic protocol.

A member finds the coordinator, joins (twice: the first answer gives it an id), syncs, and as the leader of the group
assigns all partitions in turn. It then sends heartbeats until the coordinator tells it that the group rebalances, that
it is not known, or that another broker coordinates.
"""

import json
from collections.abc import Callable, Sequence
from enum import Enum
from random import Random
from typing import TypeAlias

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.coordinator.groups.core.group_requests import JoinAnswer, Joining, SyncAnswer, Syncing
from odradek.model.topic_names import OFFSETS_TOPIC
from odradek.model.topology import TopicPartition
from odradek.sim.broker import SimulatedBroker
from odradek.sim.checkers.group_history import GroupHistory
from odradek.sim.clients.access import ClusterAccess

SESSION_TIMEOUT_MS = 6_000
_PATIENCE = 40
"""Number of times it could have acted before a request counts as lost."""
OFFSETS = TopicPartition(OFFSETS_TOPIC, 0)
_REJOIN = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION})

Answer: TypeAlias = Callable[[str, Callable[[], None]], None]


class MemberState(Enum):
    OUTSIDE = "is to join"
    JOINED = "is to sync"
    ASSIGNED = "has partitions, and is to ask where the group was"
    READING = "reads, commits and sends heartbeats"


class GroupMembership:
    def __init__(
        self, number: int, partitions: Sequence[TopicPartition], cluster: ClusterAccess, history: GroupHistory
    ) -> None:
        self.number = number
        self.member_id = ""
        self.state = MemberState.OUTSIDE
        self.generation = -1
        self.assigned: tuple[TopicPartition, ...] = ()
        self._partitions = tuple(partitions)
        self._cluster = cluster
        self._history = history
        self._joined: JoinAnswer | None = None
        self._attempt = 0
        self._waits = False
        self._waited = 0

    def give_up(self) -> None:
        """Stop waiting for the answer of the last request."""
        self._waits = False
        self._attempt += 1

    def act(self, chance: Random) -> None:
        """The next thing that it has to do, if it doesn't wait for an answer."""
        coordinator = self._cluster.elected_leader(OFFSETS)
        if self._waits:
            self._waited += 1
            if self._waited > _PATIENCE:
                self.give_up()
        if self._waits or coordinator is None:
            return
        if self.state is MemberState.OUTSIDE:
            self._ask(coordinator, "joins", self._join)
        elif self.state is MemberState.JOINED:
            self._ask(coordinator, "syncs", self._sync)
        else:
            self._act(coordinator, chance)

    def _act(self, coordinator: SimulatedBroker, chance: Random) -> None:
        self._ask(coordinator, "beats", self._beat)

    # ---- requests

    def _ask(self, coordinator: SimulatedBroker, what: str, serve: Callable[[SimulatedBroker, Answer], None]) -> None:
        self._attempt += 1
        self._waits, self._waited = True, 0
        attempt = self._attempt

        def lost() -> None:
            if self._attempt == attempt:
                self.give_up()

        def answer(result: str, take: Callable[[], None]) -> None:
            def deliver() -> None:
                if self._attempt == attempt and self._waits:
                    self._waits = False
                    take()

            self._cluster.network.post(f"answer to member {self.number}, which {what}: {result}", deliver, lost)

        def deliver() -> None:
            if not self._cluster.lives(coordinator):
                lost()
                return
            try:
                serve(coordinator, answer)
            except KafkaError as error:
                code = error.code
                answer(code.name, lambda: self._refused(code))

        text = f"member {self.number} {what} at {coordinator.id}"
        self._cluster.network.post(text, deliver, lost, to=coordinator.id)

    def _refused(self, code: ErrorCode) -> None:
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id = ""
            self._leave()
        elif code in _REJOIN:
            self._leave()

    def _leave(self) -> None:
        self.state, self.assigned = MemberState.OUTSIDE, ()

    def _join(self, coordinator: SimulatedBroker, answer: Answer) -> None:
        joining = Joining(
            member_id=self.member_id,
            fresh_id=f"member-{self.number}-{self._attempt}",
            instance_id=None,
            client_id=f"{self.number}",
            client_host="simulated",
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=SESSION_TIMEOUT_MS,
            protocol_type="consumer",
            protocols=(("range", b""),),
            needs_known_id=True,
        )

        def take(joined: JoinAnswer) -> None:
            if joined.error is ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = joined.member_id
            elif joined.error:
                self._refused(joined.error)
            else:
                self.member_id, self.generation, self._joined = joined.member_id, joined.generation, joined
                self.state = MemberState.JOINED

        def waiter(joined: JoinAnswer) -> None:
            if not joined.error:
                self._history.joined(joined.generation, joined.member_id)
            answer(f"{joined.error.name} {joined.generation}", lambda: take(joined))

        coordinator.groups.join(self._history.group_id, joining, waiter)

    def _sync(self, coordinator: SimulatedBroker, answer: Answer) -> None:
        joined = self._joined
        assert joined is not None
        assignments = self._assign(joined) if joined.leader == self.member_id else {}
        generation, member_id = self.generation, self.member_id

        def take(synced: SyncAnswer) -> None:
            if synced.error:
                self._refused(synced.error)
            else:
                self._assigned(_decode(synced.assignment))

        def waiter(synced: SyncAnswer) -> None:
            if not synced.error:
                self._history.assigned(member_id, generation, _decode(synced.assignment))
            answer(synced.error.name, lambda: take(synced))

        syncing = Syncing(self.member_id, None, self.generation, assignments)
        coordinator.groups.sync(self._history.group_id, syncing, waiter)

    def _assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.state, self.assigned = MemberState.ASSIGNED, tuple(partitions)

    def _assign(self, joined: JoinAnswer) -> dict[str, bytes]:
        members = sorted(member.member_id for member in joined.members)
        return {
            member: json.dumps([tp for n, tp in enumerate(self._partitions) if n % len(members) == place]).encode()
            for place, member in enumerate(members)
        }

    def _beat(self, coordinator: SimulatedBroker, answer: Answer) -> None:
        code = coordinator.groups.heartbeat(self._history.group_id, self.member_id, None, self.generation)
        answer(code.name, lambda: self._refused(code))


def _decode(assignment: bytes) -> list[TopicPartition]:
    return [TopicPartition(*each) for each in json.loads(assignment)] if assignment else []
