"""A program that consumes, transforms and produces exactly once, as Kafka's documents have it.

It reads a partition from the offset of its group on, writes a record for each one, and commits its offset in the same
transaction. After an abort, and when it begins, it asks the coordinator of the group for the offset; an offset that a
transaction is about to change is not answered. Its successor has the same transactional id, so that it fences it.
"""

from collections.abc import Sequence
from functools import partial
from random import Random

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.groups.core.group_records import CommittedOffset
from odradek.broker.coordinator.groups.core.member_checks import Committer
from odradek.broker.coordinator.groups.group_offsets import UNSTABLE
from odradek.broker.coordinator.state.core.state_batch import TransactionalProducer as CommittingProducer
from odradek.broker.coordinator.transactions.core.decisions import Producer
from odradek.broker.replication.leader.fetch_reader import FetchOutcome, FetchTarget, FetchTerms
from odradek.model.topology import ZERO_UUID, TopicPartition
from odradek.sim.broker import SimulatedBroker
from odradek.sim.checkers.group_history import GroupHistory
from odradek.sim.checkers.log_reading import entries_in
from odradek.sim.checkers.transaction_history import TransactionHistory
from odradek.sim.clients.access import TIMESTAMP_MS, ClusterAccess
from odradek.sim.clients.group_membership import OFFSETS
from odradek.sim.clients.resuming_producer import ResumingProducer
from odradek.sim.clients.transactional_producer import AGAIN, FENCED, TIMEOUT_MS, Phase, Take

TRANSFORMERS = "transformers"
"""The group. It has no members unless there are several programs: a partition is given to the program by hand."""
_TRANSACTIONAL_ID = "transformer"
_READ_BYTES = 1_000_000
_RECORDS_MAX = 3
_RECORDS_MAX_AT_THE_END = 200
_ABORTS_AFTER_SILENCE = 0.5
_REST = (0, 40)
"""Number of times that a program which has aborted so could begin anew, and doesn't: it is restarted."""
_LONG_REST = 1_000


def is_offset_commit(text: str) -> bool:
    """Return whether the message commits an offset in a transaction."""
    return " commits its offset at " in text


class Transformer(ResumingProducer[int]):
    def __init__(
        self,
        number: int,
        source: TopicPartition,
        partitions: Sequence[TopicPartition],
        cluster: ClusterAccess,
        history: TransactionHistory,
        offsets: GroupHistory,
        *,
        version: int = 1,
        transactional_id: str = _TRANSACTIONAL_ID,
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        super().__init__(
            number,
            partitions,
            cluster,
            history,
            version=version,
            transactional_id=transactional_id,
            timeout_ms=timeout_ms,
        )
        self.source = source
        self.hurries = False  # larger transactions, to come to the end
        self._offsets = offsets
        self._next = 0  # the position behind the transaction
        self._committer = Committer()
        self._rests = 0

    @property
    def position(self) -> int | None:
        """The offset of its group, as far as it knows."""
        return self._known

    def abort_and_rest(self) -> None:
        """Abort with a commit of its offset that may be on its way, and don't begin anew soon."""
        self._abort()
        self._rests = _LONG_REST

    def _go_on(self, chance: Random) -> None:
        if self.phase is Phase.ADDING_OFFSETS:
            self._ask("adds its offset", self._add_offset, self._offset_added)
        elif self.phase is Phase.COMMITTING_OFFSETS and self._gave_up and chance.random() < _ABORTS_AFTER_SILENCE:
            self._abort()  # with a commit of its offset that may be on its way
            self._rests = chance.randint(*_REST)
        elif self.phase is Phase.NEW and self._rests and not self.hurries:
            self._rests -= 1
        elif self.phase is Phase.COMMITTING_OFFSETS:
            assert self._producer is not None
            commit = partial(self._commit_offset, self._producer, self._committer, self._next)
            self._ask("commits its offset", commit, self._offset_committed, OFFSETS, may_be_late=True)
        elif self.phase is Phase.READY and self.hurries:
            self._begin(chance)
        else:
            super()._go_on(chance)

    # ---- reading

    def _seek(self) -> None:
        self._ask("asks for its offset", self._ask_offset, self._sought, OFFSETS)

    def _ask_offset(self, coordinator: SimulatedBroker, answer: Take) -> None:
        found = coordinator.groups.offsets.committed(TRANSFORMERS, [self.source], stable=True)[self.source]
        if found is UNSTABLE:
            answer(ErrorCode.UNSTABLE_OFFSET_COMMIT, None)
            return
        offset = 0 if found is None else found.offset
        if self._cluster.coordinates(coordinator, OFFSETS):
            self._offsets.answered(self.source, offset)
        answer(ErrorCode.NONE, Producer(offset, 0))

    def _sought(self, error: ErrorCode, found: Producer | None) -> None:
        if not error and found is not None:
            self._found(found.id)

    def _begin(self, chance: Random) -> None:
        """Read some records; begin a transaction if there are any."""
        position = self._known
        assert position is not None
        leader = self._cluster.elected_leader(self.source)
        if leader is None or not leader.leads(self.source):
            return
        records = _RECORDS_MAX_AT_THE_END if self.hurries else chance.randint(1, _RECORDS_MAX)
        end = position
        while end < position + records and (found := self._end_of(leader, end)) > end:
            end = found
        if end == position:
            return
        self._next = min(end, position + records)
        self._name = f"{self.number}/{next(self._transactions)}"
        by_partition: dict[TopicPartition, list[bytes]] = {}
        for offset in range(position, self._next):
            tp = self._partitions[offset % len(self._partitions)]
            by_partition.setdefault(tp, []).append(f"{self._name}/{offset}".encode())
        self._batches = list(by_partition.items())
        self._commits = self.hurries or chance.random() < 0.8
        self._begun()

    def _end_of(self, leader: SimulatedBroker, position: int) -> int:
        outcomes: list[FetchOutcome] = []
        target = FetchTarget(self.source, ZERO_UUID, position, _READ_BYTES)
        leader.replicas.fetch([target], FetchTerms(0, 0, _READ_BYTES, 0), outcomes.extend)
        found = outcomes[0].found
        if outcomes[0].error or found is None or found.records is None:
            return position
        return max((entry.last_offset + 1 for entry in entries_in(found.records.read())), default=position)

    # ---- offsets in the transaction

    def _added(self, error: ErrorCode, producer: Producer | None) -> None:
        super()._added(error, producer)
        if self.phase is Phase.WRITING:
            self.phase = Phase.ADDING_OFFSETS

    def _add_offset(self, coordinator: SimulatedBroker, answer: Take) -> None:
        assert self._producer is not None
        coordinator.transactions.add_partitions(self._id, self._producer, [OFFSETS], lambda error: answer(error, None))

    def _offset_added(self, error: ErrorCode, _: Producer | None) -> None:
        if not error:
            self.phase = Phase.WRITING
        elif error not in AGAIN:
            self._abandon()

    def _all_written(self) -> None:
        self.phase = Phase.COMMITTING_OFFSETS

    def _commit_offset(
        self, producer: Producer, committer: Committer, offset: int, coordinator: SimulatedBroker, answer: Take
    ) -> None:
        coordinator.groups.offsets.commit_in_transaction(
            TRANSFORMERS,
            committer,
            CommittingProducer(self._id, producer.id, producer.epoch),
            {self.source: CommittedOffset(offset, -1, "", TIMESTAMP_MS)},
            lambda errors: answer(errors[self.source], None),
            add=self._adds_by_leaders,
        )

    def _offset_committed(self, error: ErrorCode, _: Producer | None) -> None:
        if not error:
            self.phase = Phase.ENDING
        elif error in FENCED:
            self._abandon()
        elif error not in AGAIN:
            self._abort()

    def _after_commit(self) -> int:
        if self._next > self._offsets.committed.get(self.source, 0):
            self._offsets.commit_acknowledged(self.source, self._next)  # its successor may have gone on meanwhile
        return self._next
