"""A member of a consumer group, as Kafka's consumers are with the classic protocol and the range of all partitions.

When it has its partitions, it asks for the group's offsets, reads from the leaders of the partitions and commits.
"""

from collections.abc import Sequence
from functools import partial
from random import Random

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.groups.core.group_records import CommittedOffset
from odradek.broker.coordinator.groups.core.member_checks import Committer
from odradek.broker.coordinator.groups.group_offsets import UNSTABLE
from odradek.broker.replication.leader.fetch_reader import FetchOutcome, FetchTarget, FetchTerms
from odradek.model.topology import ZERO_UUID, TopicPartition
from odradek.sim.broker import SimulatedBroker
from odradek.sim.checkers.group_history import GroupHistory
from odradek.sim.checkers.log_reading import entries_in
from odradek.sim.clients.access import TIMESTAMP_MS, ClusterAccess
from odradek.sim.clients.group_membership import OFFSETS, Answer, GroupMembership, MemberState

GROUP = "readers"
_READ_BYTES = 1_000_000


class GroupMember(GroupMembership):
    def __init__(
        self, number: int, partitions: Sequence[TopicPartition], cluster: ClusterAccess, history: GroupHistory
    ) -> None:
        super().__init__(number, partitions, cluster, history)
        self.positions: dict[TopicPartition, int] = {}
        self.committed: dict[TopicPartition, int] = {}
        self.stalled_acts = 0  # the number of times that it could act and doesn't

    @property
    def is_done(self) -> bool:
        """Return whether the member has committed all that it has read."""
        return self.state is MemberState.READING and self.positions == self.committed

    @property
    def has_to_commit(self) -> bool:
        return self.state is MemberState.READING and self.positions != self.committed and not self.stalled_acts

    def is_commit(self, text: str) -> bool:
        """Return whether a message with this text is a commit of the member."""
        return text.startswith(f"member {self.number} commits in generation ")

    def stall(self, acts: int) -> None:
        """Send a commit, and do nothing so many times."""
        coordinator = self._cluster.elected_leader(OFFSETS)
        if coordinator is not None:
            self._send_commit(coordinator)
            self.stalled_acts = acts

    def act(self, chance: Random) -> None:
        if self.stalled_acts:
            self.stalled_acts -= 1
        else:
            super().act(chance)

    def _act(self, coordinator: SimulatedBroker, chance: Random) -> None:
        if self.state is MemberState.ASSIGNED:
            self._ask(coordinator, "asks for offsets", self._ask_offsets)
            return
        action = chance.choice(("reads", "reads", "commits", "beats"))
        if action == "reads" and self.positions:
            self._read(chance.choice(list(self.positions)))
        elif action == "commits" and self.positions != self.committed:
            self._send_commit(coordinator)
        else:
            self._ask(coordinator, "beats", self._beat)

    def _leave(self) -> None:
        super()._leave()
        self.positions, self.committed = {}, {}

    def _assigned(self, partitions: Sequence[TopicPartition]) -> None:
        super()._assigned(partitions)
        self.positions = dict.fromkeys(partitions, -1)

    # ---- offsets

    def _ask_offsets(self, coordinator: SimulatedBroker, answer: Answer) -> None:
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

    def _send_commit(self, coordinator: SimulatedBroker) -> None:
        committer = Committer(self.member_id, None, self.generation)
        commit = partial(self._commit, committer, dict(self.positions), self._attempt + 1)
        self._ask(coordinator, f"commits in generation {self.generation}", commit)

    def _commit(
        self,
        committer: Committer,
        positions: dict[TopicPartition, int],
        attempt: int,
        coordinator: SimulatedBroker,
        answer: Answer,
    ) -> None:
        """Commit the positions of when the request was sent. One that was given up arrives late only after a rebalance,
        when it must be refused: in the same generation it would take the offset back, which Kafka's protocol allows."""
        if attempt != self._attempt and committer.generation == coordinator.generation_of(GROUP):
            return
        commits = {tp: CommittedOffset(at, -1, "", TIMESTAMP_MS) for tp, at in positions.items()}

        def done(errors: dict[TopicPartition, ErrorCode]) -> None:
            kept = {tp: commits[tp].offset for tp, error in errors.items() if not error}
            for tp, offset in kept.items():
                self._history.commit_acknowledged(tp, offset)
            refused = next((error for error in errors.values() if error), None)
            answer(
                refused.name if refused else str(list(kept.values())),
                lambda: self._refused(refused) if refused else self.committed.update(kept),
            )

        coordinator.groups.offsets.commit(GROUP, committer, commits, done)

    def _read(self, tp: TopicPartition) -> None:
        """Read at once: the reader without a group checks the records that a consumer gets."""
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
