"""A member of a consumer group, as Kafka's consumers are with the classic protocol and the range of all partitions.

It finds the coordinator, joins (twice: the first answer gives it an id), syncs, and as the leader of the group assigns.
It then asks for the group's offsets, reads from the leaders of its partitions and commits, until the coordinator tells
it that the group rebalances, that it is not known, or that another broker coordinates.
"""

import json
from collections.abc import Callable, Sequence
from enum import Enum
from random import Random

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.coordinator.groups.core.group_records import CommittedOffset
from odradek.broker.coordinator.groups.core.group_requests import JoinAnswer, Joining, SyncAnswer, Syncing
from odradek.broker.coordinator.groups.core.member_checks import Committer
from odradek.broker.coordinator.groups.group_offsets import UNSTABLE
from odradek.broker.replication.leader.fetch_reader import FetchOutcome, FetchTarget, FetchTerms
from odradek.model.topic_names import OFFSETS_TOPIC
from odradek.model.topology import ZERO_UUID, TopicPartition
from odradek.sim.broker import SimulatedBroker
from odradek.sim.checkers.group_history import GroupHistory
from odradek.sim.checkers.log_reading import entries_in
from odradek.sim.clients.access import TIMESTAMP_MS, ClusterAccess

GROUP = "readers"
SESSION_TIMEOUT_MS = 6_000
_READ_BYTES = 1_000_000
_PATIENCE = 40
"""Number of times it could have acted before a request counts as lost."""
OFFSETS = TopicPartition(OFFSETS_TOPIC, 0)
_REJOIN = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION})


class MemberState(Enum):
    OUTSIDE = "is to join"
    JOINED = "is to sync"
    ASSIGNED = "is to ask where the group was"
    READING = "reads, commits and sends heartbeats"


class GroupMember:
    def __init__(
        self, number: int, partitions: Sequence[TopicPartition], cluster: ClusterAccess, history: GroupHistory
    ) -> None:
        self.number = number
        self.member_id = ""
        self.state = MemberState.OUTSIDE
        self.generation = -1
        self.positions: dict[TopicPartition, int] = {}
        self.committed: dict[TopicPartition, int] = {}
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
        elif self.state is MemberState.ASSIGNED:
            self._ask(coordinator, "asks for offsets", self._ask_offsets)
        else:
            action = chance.choice(("reads", "reads", "commits", "beats"))
            if action == "reads" and self.positions:
                self._read(chance.choice(list(self.positions)))
            elif action == "commits" and self.positions != self.committed:
                self._ask(coordinator, "commits", self._commit)
            else:
                self._ask(coordinator, "beats", self._beat)

    @property
    def is_done(self) -> bool:
        """Return whether the member has committed all that it has read."""
        return self.state is MemberState.READING and self.positions == self.committed

    # ---- requests

    def _ask(self, coordinator: SimulatedBroker, what: str, serve: Callable[[SimulatedBroker, "Answer"], None]) -> None:
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
        self.state = MemberState.OUTSIDE
        self.positions, self.committed = {}, {}

    def _join(self, coordinator: SimulatedBroker, answer: "Answer") -> None:
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

        coordinator.groups.join(GROUP, joining, waiter)

    def _sync(self, coordinator: SimulatedBroker, answer: "Answer") -> None:
        joined = self._joined
        assert joined is not None
        assignments = self._assign(joined) if joined.leader == self.member_id else {}
        generation, member_id = self.generation, self.member_id

        def take(synced: SyncAnswer) -> None:
            if synced.error:
                self._refused(synced.error)
                return
            self.state = MemberState.ASSIGNED
            self.positions = dict.fromkeys(_decode(synced.assignment), -1)

        def waiter(synced: SyncAnswer) -> None:
            if not synced.error:
                self._history.assigned(member_id, generation, _decode(synced.assignment))
            answer(synced.error.name, lambda: take(synced))

        syncing = Syncing(self.member_id, None, self.generation, assignments)
        coordinator.groups.sync(GROUP, syncing, waiter)

    def _assign(self, joined: JoinAnswer) -> dict[str, bytes]:
        members = sorted(member.member_id for member in joined.members)
        return {
            member: json.dumps([tp for n, tp in enumerate(self._partitions) if n % len(members) == place]).encode()
            for place, member in enumerate(members)
        }

    def _ask_offsets(self, coordinator: SimulatedBroker, answer: "Answer") -> None:
        found = coordinator.groups.offsets.committed(GROUP, self.positions, stable=True)
        if any(each is UNSTABLE for each in found.values()):
            answer("unstable", lambda: None)
            return
        offsets = {tp: 0 if each is None else each.offset for tp, each in found.items()}
        if self._cluster.coordinates(coordinator, OFFSETS):
            for tp, offset in offsets.items():
                self._history.answered(tp, offset)

        def take() -> None:
            self.positions, self.committed = dict(offsets), dict(offsets)
            self.state = MemberState.READING

        answer(str(list(offsets.values())), take)

    def _commit(self, coordinator: SimulatedBroker, answer: "Answer") -> None:
        commits = {tp: CommittedOffset(at, -1, "", TIMESTAMP_MS) for tp, at in self.positions.items()}

        def done(errors: dict[TopicPartition, ErrorCode]) -> None:
            kept = {tp: commits[tp].offset for tp, error in errors.items() if not error}
            for tp, offset in kept.items():
                self._history.commit_acknowledged(tp, offset)
            refused = next((error for error in errors.values() if error), None)
            answer(
                refused.name if refused else str(list(kept.values())),
                lambda: self._refused(refused) if refused else self.committed.update(kept),
            )

        coordinator.groups.offsets.commit(GROUP, Committer(self.member_id, None, self.generation), commits, done)

    def _beat(self, coordinator: SimulatedBroker, answer: "Answer") -> None:
        code = coordinator.groups.heartbeat(GROUP, self.member_id, None, self.generation)
        answer(code.name, lambda: self._refused(code))

    def _read(self, tp: TopicPartition) -> None:
        """Read at once: the reader without a group checks what a consumer is shown."""
        leader = self._cluster.elected_leader(tp)
        partition = leader.replicas.partitions.get(tp) if leader is not None else None
        if leader is None or partition is None or not partition.is_leader:
            return
        outcomes: list[FetchOutcome] = []
        target = FetchTarget(tp, ZERO_UUID, self.positions[tp], _READ_BYTES)
        leader.replicas.fetch([target], FetchTerms(0, 0, _READ_BYTES, 0), outcomes.extend)
        if outcomes[0].error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self.positions[tp] = max(self.positions[tp], partition.log.log_start_offset)
        elif not outcomes[0].error:
            found = outcomes[0].found
            records = found.records.read() if found is not None and found.records is not None else b""
            end = max((entry.last_offset + 1 for entry in entries_in(records)), default=0)
            self.positions[tp] = max(self.positions[tp], end)


Answer = Callable[[str, Callable[[], None]], None]


def _decode(assignment: bytes) -> list[TopicPartition]:
    return [TopicPartition(*each) for each in json.loads(assignment)] if assignment else []
