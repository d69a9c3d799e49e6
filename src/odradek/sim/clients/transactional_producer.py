"""A transactional producer by the rules of Kafka's Java client, in either version of transactions.

It gets an id and an epoch, adds partitions to a transaction, writes to them one batch at a time, commits or aborts.
A request without an answer is sent again. A batch that it gives up takes a new epoch after the transaction, because
the batch may still be on its way. A producer that is fenced begins anew.

In version 2 the leaders add the partitions, and each end of a transaction answers the epoch of the next one.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from itertools import count
from random import Random
from typing import TypeAlias

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.coordinator.transactions.core.decisions import Producer
from odradek.broker.coordinator.transactions.core.transaction import CLASSIC, EPOCH_BUMP_VERSION
from odradek.broker.log.core.append_result import AppendResult
from odradek.broker.replication.core.refused_batches import RefusedBatches
from odradek.broker.replication.leader.delayed_produce import AppendOutcome
from odradek.broker.replication.leader.transactional_appends import TransactionalProduce
from odradek.model.topic_names import TRANSACTIONS_TOPIC
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import Record
from odradek.sim.broker import SimulatedBroker
from odradek.sim.checkers.transaction_history import TransactionHistory, TxnOutcome
from odradek.sim.clients.access import PRODUCE_TIMEOUT_MS, TIMESTAMP_MS, ClusterAccess

TIMEOUT_MS = 10_000
STATE = TopicPartition(TRANSACTIONS_TOPIC, 0)
_PRODUCE_VERSION = 11
_PRODUCE_VERSION_ADDING = 12
_PATIENCE = 30
"""Number of times it could have acted before a request counts as lost."""
_BEGINS = 0.3
"""Share of the times that it could begin a transaction and does: between two, late batches of the first arrive."""

AGAIN = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING})
_ABORT = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.INVALID_TXN_STATE,
    }
)


class Phase(Enum):
    NEW = "is to get an epoch"
    READY = "is between transactions"
    SEEKING = "asks where its group is"
    ADDING = "adds partitions"
    ADDING_OFFSETS = "adds the offsets of its group"
    WRITING = "writes"
    COMMITTING_OFFSETS = "commits offsets of its group in the transaction"
    ENDING = "commits or aborts"


Take: TypeAlias = Callable[[ErrorCode, Producer | None], None]


class TransactionalProducer:
    def __init__(
        self,
        number: int,
        partitions: Sequence[TopicPartition],
        cluster: ClusterAccess,
        history: TransactionHistory,
        *,
        version: int = 1,
        transactional_id: str | None = None,
        timeout_ms: int = TIMEOUT_MS,
        has_keys: bool = False,
    ) -> None:
        """`has_keys`: each record has a key of its own, so that compaction keeps it."""
        self.number = number
        self.phase = Phase.NEW
        self.fault: str | None = None
        self.keeps_id = False
        """True if its transactional id has no other user and doesn't expire: its producer id is never unknown."""
        self._timeout_ms = timeout_ms
        self._has_keys = has_keys
        self.transactional_id = self._id = transactional_id or f"ledger-{number}"
        self._adds_by_leaders = version >= EPOCH_BUMP_VERSION
        self._client_version = EPOCH_BUMP_VERSION if self._adds_by_leaders else CLASSIC
        self._partitions = partitions
        self._cluster = cluster
        self._history = history
        self._producer: Producer | None = None
        self._bumps = False  # the epoch of before may have a batch on its way
        self._sequences: dict[TopicPartition, int] = {}
        self._transactions = count(1)
        self._name = ""
        self._batches: list[tuple[TopicPartition, list[bytes]]] = []
        self._commits = True
        self._attempt = 0
        self._waits = False
        self._waited = 0
        self._gave_up = False  # its last request had no answer

    @property
    def is_done(self) -> bool:
        return self.phase in (Phase.NEW, Phase.READY)

    def die(self) -> None:
        """End without a word; the next one has the same transactional id, and goes on counting transactions."""
        self._abandon()
        self._waits = False
        self._attempt += 1

    def abort_in_flight(self) -> None:
        """Give up the batch that is in flight, and abort the transaction: the batch may be appended later."""
        self._give_up()
        self._abort()

    @property
    def is_writing(self) -> bool:
        """Return whether it waits for the answer to a batch."""
        return self.phase is Phase.WRITING and self._waits

    def act(self, chance: Random, *, begins: bool = True) -> None:
        """The next thing that it has to do, if it doesn't wait for an answer."""
        if self._waits:
            self._waited += 1
            if self._waited <= _PATIENCE:
                return
            self._give_up()
        if begins or not self.is_done:
            self._act(chance)

    def _act(self, chance: Random) -> None:
        if self.phase is Phase.NEW:
            self._ask("gets an epoch", self._init, self._initialized)
        elif self.phase is Phase.READY:
            if chance.random() < _BEGINS:
                self._begin(chance)
        elif self.phase is Phase.ADDING:
            self._ask("adds partitions", self._add, self._added)
        elif self.phase is Phase.WRITING:
            self._write(chance)
        else:
            self._ask("commits" if self._commits else "aborts", self._end, self._ended)

    # ---- a transaction

    def _begin(self, chance: Random) -> None:
        self._name = f"{self.number}/{next(self._transactions)}"
        chosen = chance.sample(list(self._partitions), chance.randint(1, len(self._partitions)))
        numbers = count()
        self._batches = [
            (tp, [f"{self._name}/{next(numbers)}".encode() for _ in range(chance.randint(1, 2))]) for tp in chosen
        ]
        self._commits = chance.random() < 0.8
        self._begun()

    def _begun(self) -> None:
        self._history.begin(self._name, dict(self._batches))
        self.phase = Phase.WRITING if self._adds_by_leaders else Phase.ADDING

    def _abandon(self) -> None:
        """Begin anew, under a new epoch. Without an answer to its commit, the transaction may have either end."""
        if self.phase is Phase.ENDING and self._commits:
            self._history.end(self._name, TxnOutcome.UNKNOWN)
        elif not self.is_done:
            self._history.end(self._name, TxnOutcome.ABORTED)
        self.phase, self._producer, self._bumps = Phase.NEW, None, False

    def _refused(self, error: ErrorCode) -> None:
        """Begin anew: another producer has the transactional id, or its transaction timed out."""
        if error is ErrorCode.INVALID_PRODUCER_ID_MAPPING and self.keeps_id:
            self.fault = f"{self._id}: {error.name} for {self._producer}"
        self._abandon()

    def _abort(self) -> None:
        self.phase, self._commits, self._bumps = Phase.ENDING, False, True

    # ---- requests to the coordinator

    def _ask(
        self,
        what: str,
        call: Callable[[SimulatedBroker, Take], None],
        take: Take,
        kept_in: TopicPartition = STATE,
        *,
        may_be_late: bool = False,
    ) -> None:
        """`may_be_late`: carried out after its connection was closed too, if its transaction was given up since."""
        coordinator = self._cluster.elected_leader(kept_in)
        if coordinator is None:
            return
        attempt = self._wait()
        is_closed, sent_as = False, self._producer

        def lost() -> None:
            nonlocal is_closed
            is_closed = True
            if self._attempt == attempt:
                self._give_up()

        def answer(error: ErrorCode, producer: Producer | None) -> None:
            def deliver() -> None:
                if self._attempt == attempt and self._waits:
                    self._waits = False
                    take(error, producer)

            self._cluster.network.post(f"answer to {self._id}, which {what}: {error.name}", deliver, lost)

        def deliver() -> None:
            is_late = is_closed or self._attempt != attempt
            if is_late and not (may_be_late and (self._bumps or self._producer != sent_as)):
                return  # its connection is closed: the broker carries it out no more
            if not self._cluster.lives(coordinator):
                lost()
                return
            try:
                call(coordinator, answer)
            except KafkaError as error:
                answer(error.code, None)

        text = f"{self._id} {what} at {coordinator.id}"
        self._cluster.network.post(text, deliver, lost, to=coordinator.id, writes=True)

    def _wait(self) -> int:
        self._attempt += 1
        self._waits, self._waited, self._gave_up = True, 0, False
        return self._attempt

    def _give_up(self) -> None:
        self._waits, self._gave_up = False, True
        self._attempt += 1

    def _init(self, coordinator: SimulatedBroker, answer: Take) -> None:
        expected = self._producer if self._bumps else None
        coordinator.transactions.init_producer_id(self._id, self._timeout_ms, expected, answer)

    def _initialized(self, error: ErrorCode, producer: Producer | None) -> None:
        if not error:
            self._producer, self._bumps, self._sequences = producer, False, {}
            self.phase = Phase.READY
        elif error not in AGAIN:
            self._abandon()

    def _add(self, coordinator: SimulatedBroker, answer: Take) -> None:
        assert self._producer is not None
        partitions = [tp for tp, _ in self._batches]
        coordinator.transactions.add_partitions(self._id, self._producer, partitions, lambda error: answer(error, None))

    def _added(self, error: ErrorCode, _: Producer | None) -> None:
        if not error:
            self.phase = Phase.WRITING
        elif error not in AGAIN:
            self._refused(error)

    def _end(self, coordinator: SimulatedBroker, answer: Take) -> None:
        assert self._producer is not None
        coordinator.transactions.end(
            self._id, self._producer, answer, commit=self._commits, client_version=self._client_version
        )

    def _ended(self, error: ErrorCode, producer: Producer | None) -> None:
        if error in AGAIN:
            return
        if error:
            self._refused(error)
            return
        self._history.end(self._name, TxnOutcome.COMMITTED if self._commits else TxnOutcome.ABORTED)
        if self._adds_by_leaders:
            self._producer, self._bumps, self._sequences = producer, False, {}
        self.phase = Phase.NEW if self._bumps else Phase.READY

    # ---- batches

    def _write(self, chance: Random) -> None:
        if not self._batches:
            self._all_written()
            return
        if chance.random() < (0.5 if self._gave_up else 0.02):
            self._abort()  # with a batch that may be on its way
            return
        tp, values = self._batches[0]
        leader = self._cluster.elected_leader(tp)
        if leader is not None:
            self._send(leader, tp, values)

    def _all_written(self) -> None:
        self.phase = Phase.ENDING

    def _send(self, leader: SimulatedBroker, tp: TopicPartition, values: list[bytes]) -> None:
        assert self._producer is not None
        attempt, (producer_id, epoch) = self._wait(), (self._producer.id, self._producer.epoch)
        api_version = _PRODUCE_VERSION_ADDING if self._adds_by_leaders else _PRODUCE_VERSION
        sequence = self._sequences.get(tp, 0)
        batch = build_batch(
            [Record(n, TIMESTAMP_MS, value if self._has_keys else None, value) for n, value in enumerate(values)],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=True,
        )

        def lost() -> None:
            if self._attempt == attempt:
                self._give_up()

        def answer(outcomes: list[AppendOutcome]) -> None:
            (outcome,) = outcomes
            result = outcome.code.name if isinstance(outcome, KafkaError) else f"at {outcome.first_offset}"

            def deliver() -> None:
                if self._attempt == attempt and self._waits:
                    self._waits = False
                    self._written(tp, sequence + len(values), outcome)

            self._cluster.network.post(f"answer to {self._id}, which writes to {tp}: {result}", deliver, lost)

        def deliver() -> None:
            if not self._cluster.lives(leader):
                lost()
                return
            done = leader.replicas.append(
                [(tp, memoryview(bytearray(batch)))],
                acks=-1,
                timeout_ms=PRODUCE_TIMEOUT_MS,
                api_version=api_version,
                refused=RefusedBatches(),
                done=answer,
                transaction=TransactionalProduce(self._id, producer_id, epoch, api_version, self._adds_by_leaders),
            )
            if done is not None:
                answer(done)

        text = f"{tp}: batch {sequence} of {self._id}, epoch {epoch}, transaction {self._name} at {leader.id}"
        self._cluster.network.post(text, deliver, lost, to=leader.id, writes=True)

    def _written(self, tp: TopicPartition, next_sequence: int, outcome: AppendOutcome) -> None:
        if isinstance(outcome, AppendResult):
            self._sequences[tp] = next_sequence
            del self._batches[0]
        elif outcome.code in FENCED:
            self._refused(outcome.code)
        elif outcome.code in _ABORT:
            self._abort()
        elif outcome.code not in AGAIN:
            self.fault = f"{self._id}: a leader answers {outcome.code.name}"
