"""The coordinator of the transactional ids in the partitions of __transaction_state that this broker leads.

A decision about an id is made in a turn, under the id's lock; after the lock is released, its record is written and its
answer sent. The state in memory changes only when the record is replicated; whether that succeeds or fails, the id is
no longer pending. A decided end (PrepareCommit, PrepareAbort) is answered at once, and executed after that
(`transaction_ends`). The next leader of the partition replays the records and continues with the decided ends.
"""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import TypeAlias

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.broker.coordinator.state.state_log_writer import StateLogWriter, Write
from odradek.broker.coordinator.state.state_table import StateTable
from odradek.broker.coordinator.transactions.batch_channel import Connect
from odradek.broker.coordinator.transactions.core import decisions
from odradek.broker.coordinator.transactions.core.append_errors import client_error
from odradek.broker.coordinator.transactions.core.decisions import DONE, Decision, Move, Producer, Refused
from odradek.broker.coordinator.transactions.core.transaction import CLASSIC, EPOCH_BUMP_VERSION, PREPARED, Transaction
from odradek.broker.coordinator.transactions.core.transaction_records import encode_key, encode_record
from odradek.broker.coordinator.transactions.core.transaction_story import TransactionEvent
from odradek.broker.coordinator.transactions.transaction_ends import TransactionEnds
from odradek.broker.coordinator.transactions.transaction_entry import Asked, TransactionEntry
from odradek.broker.coordinator.transactions.transaction_log import TransactionLog
from odradek.broker.coordinator.transactions.transaction_stories import TransactionStories
from odradek.broker.purgatory.reaper import ExpirationReaper
from odradek.broker.replication.leader.marker_writer import MarkerWriter
from odradek.model.metadata_image import MetadataCache
from odradek.model.topic_names import TRANSACTIONS_TOPIC
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

log = get_logger(__name__)

NO_PRODUCER = Producer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
ProducerAnswer: TypeAlias = Callable[[ErrorCode, Producer], None]
_Answer: TypeAlias = Callable[[ErrorCode, Transaction], None]
_Decide: TypeAlias = Callable[[Transaction, bool, int | None], Decision]

_EXPIRED_TOGETHER = 1_000  # ids whose removal is written in one batch, at most


class TransactionCoordinator:
    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        transaction_log: TransactionLog,
        metadata: MetadataCache,
        reaper: ExpirationReaper,
        clock: Clock,
        writer: StateLogWriter,
        new_producer_id: Callable[[], int],
        connect: Connect,
        marker_writer: MarkerWriter,
        record: Callable[[TransactionEvent], None] | None = None,
    ) -> None:
        """`new_producer_id` may block, and raise KafkaError. `connect`: a connection to another broker. `record`: the
        flight recorder."""
        self._log = transaction_log
        self._clock = clock
        self._writer = writer
        self._new_producer_id = new_producer_id
        self._timeout_max_ms = config.transaction_max_timeout_ms
        self._expiration_ms = config.transactional_id_expiration_ms
        self._table = StateTable("transactional ids", transaction_log, clock, reaper, self)
        self._stories = TransactionStories(clock, record)
        self.ends = TransactionEnds(broker_id, metadata, reaper, clock, writer, connect, marker_writer, self._stories)

    def stop(self) -> None:
        self.ends.stop()
        self._table.stop()

    def partition_for(self, transactional_id: str) -> int:
        return self._log.partition_for(transactional_id)

    # ---- transactional ids of this broker

    def lead(self, tp: TopicPartition, leader_epoch: int) -> None:
        """Take the ids of the partition, or keep them. Another coordinator, of an epoch that this broker was not told
        of, may have sent markers: those with this one's former epoch are refused, and ends begin again."""
        if tp.topic == TRANSACTIONS_TOPIC:
            if 0 <= self._table.epoch_of(tp.partition) < leader_epoch - 1:
                self._table.resign(tp.partition, leader_epoch)
            self._table.lead(tp.partition, leader_epoch)

    def resign(self, tp: TopicPartition, leader_epoch: int) -> None:
        if tp.topic == TRANSACTIONS_TOPIC:
            self._table.resign(tp.partition, leader_epoch)

    def forget(self, tp: TopicPartition) -> None:
        if tp.topic == TRANSACTIONS_TOPIC:
            self._table.removed(tp.partition)

    def load(self, partition: int) -> Iterable[TransactionEntry]:
        return [TransactionEntry(each, self._log, partition) for each in self._log.replay(partition).values()]

    def replayed(self, entry: TransactionEntry) -> None:
        """Only this coordinator's own records change an id."""

    thrown_away = replayed

    def loaded(self, entry: TransactionEntry) -> None:
        """Continue a decided end. An id without a transaction needs nothing."""
        if entry.transaction.is_ended:
            return

        def go_on() -> None:
            self._stories.loaded(entry)
            if entry.transaction.state in PREPARED and entry.ending is None:
                self._begin_end(entry)

        self._writer.turn(entry, go_on)

    def unloaded(self, entry: TransactionEntry) -> None:
        self._writer.turn(entry, partial(self.ends.give_up, entry))

    def _begin_end(self, entry: TransactionEntry) -> None:
        """Start a decided end, during a turn at its entry, or leave it to the next coordinator. Markers with that
        coordinator's epoch would not be refused after it has ended the transaction.
        """
        coordinator_epoch = self._table.epoch_of(entry.partition)
        if not entry.is_gone:
            self.ends.begin(entry, coordinator_epoch)

    # ---- requests of producers

    def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: Producer | None, done: ProducerAnswer
    ) -> None:
        """`done` is called once. Blocks while a new producer id comes from ZooKeeper. KafkaError: refused at once."""
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if not 0 < timeout_ms <= self._timeout_max_ms:
            raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        entry = self._table.find(transactional_id)
        if entry is None:
            new = Transaction.new(transactional_id, self._new_producer_id(), timeout_ms, self._clock.now_ms())
            entry = self._table.find_or_add(
                transactional_id, lambda partition: TransactionEntry(new, self._log, partition)
            )

        def decide(transaction: Transaction, pending: bool, new_id: int | None) -> Decision:
            now_ms = self._clock.now_ms()
            return decisions.init_producer_id(
                transaction, expected, timeout_ms, now_ms, pending=pending, new_producer_id=new_id
            )

        def answer(error: ErrorCode, moved: Transaction) -> None:
            if not error and moved.state in PREPARED:
                error = ErrorCode.CONCURRENT_TRANSACTIONS  # the open transaction is being aborted
            if error:
                done(error, NO_PRODUCER)
                return
            log.info(
                "producer initialized",
                transactional_id=transactional_id,
                producer_id=moved.producer_id,
                epoch=moved.producer_epoch,
            )
            done(error, Producer(moved.producer_id, moved.producer_epoch))

        self._decide(Asked("InitProducerId", expected), entry, decide, answer)

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Collection[TopicPartition],
        done: Callable[[ErrorCode], None],
        client_version: int = CLASSIC,
    ) -> None:
        """`done` is called once. KafkaError: refused at once. In version 1 the request waits for the markers of the
        former transaction; in version 2 it is the leader of a partition that asks again (`PartitionVerifier`)."""

        def decide(transaction: Transaction, pending: bool, new_id: int | None) -> Decision:
            now_ms = self._clock.now_ms()
            return decisions.add_partitions(transaction, producer, partitions, client_version, now_ms, pending=pending)

        is_classic = client_version < EPOCH_BUMP_VERSION
        asked = Asked("AddPartitionsToTxn" if is_classic else "Produce", producer, may_wait=is_classic)
        self._decide(asked, self._known(transactional_id), decide, lambda error, _: done(error))

    def verify(
        self, transactional_id: str, producer: Producer, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        try:
            entry = self._known(transactional_id)
        except KafkaError as error:
            return dict.fromkeys(partitions, error.code)
        errors = decisions.verify(entry.transaction, producer, partitions)
        if ErrorCode.PRODUCER_FENCED in errors.values():
            self._stories.fenced(entry, "Produce", producer)
        return errors

    def end(
        self,
        transactional_id: str,
        producer: Producer,
        done: ProducerAnswer,
        *,
        commit: bool,
        client_version: int = CLASSIC,
    ) -> None:
        """`done` is called once, with the producer's next id and epoch. KafkaError: refused at once.

        Blocks only in version 2, once in 32,767 transactions, for a new producer id.
        """

        def decide(transaction: Transaction, pending: bool, new_id: int | None) -> Decision:
            now_ms = self._clock.now_ms()
            return decisions.end(
                transaction, producer, client_version, now_ms, commit=commit, pending=pending, new_producer_id=new_id
            )

        def answer(error: ErrorCode, moved: Transaction) -> None:
            done(error, NO_PRODUCER if error else decisions.next_producer(moved))

        self._decide(Asked("EndTxn", producer), self._known(transactional_id), decide, answer)

    def _known(self, transactional_id: str) -> TransactionEntry:
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        entry = self._table.find(transactional_id)
        if entry is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return entry

    # ---- administration

    def describe(self, transactional_id: str) -> Transaction:
        """Return the transaction. KafkaError: unknown id, or another broker's."""
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        entry = self._table.find(transactional_id)
        if entry is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return entry.transaction

    def list_transactions(self) -> list[Transaction]:
        """Return the transactional ids. KafkaError while some are still being loaded."""
        if self._table.is_loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return [entry.transaction for entry in self._table.all()]

    @property
    def load_times_ms(self) -> list[int]:
        return self._table.load_times_ms

    # ---- time

    def abort_timed_out(self) -> None:
        """Abort transactions that are open for longer than their producer's timeout, and fence the producer."""
        now_ms = self._clock.now_ms()
        for entry in self._table.all():
            if decisions.is_timed_out(entry.transaction, now_ms):
                self._writer.turn(entry, partial(self._abort_timed_out, entry, now_ms))
            elif not entry.transaction.is_ended:
                self._stories.overdue(entry)

    def _abort_timed_out(self, entry: TransactionEntry, now_ms: int) -> None:
        if entry.is_pending or entry.is_gone or not decisions.is_timed_out(entry.transaction, now_ms):
            return
        log.info("transaction timed out, aborting", transactional_id=entry.key, timeout_ms=entry.transaction.timeout_ms)
        self._stories.timed_out(entry)
        to = decisions.fence(entry.transaction, now_ms)
        self._write(entry, to, lambda error, _: _report(entry, error), "transaction timed out")

    def expire_ids(self) -> None:
        """Remove ids without news for `transactional.id.expiration.ms`, in batches."""
        now_ms = self._clock.now_ms()
        expired = [e for e in self._table.all() if decisions.is_expired(e.transaction, now_ms, self._expiration_ms)]
        for begin in range(0, len(expired), _EXPIRED_TOGETHER):
            with self._writer.deferred():
                for entry in expired[begin : begin + _EXPIRED_TOGETHER]:
                    self._writer.turn(entry, partial(self._expire, entry, now_ms))
        if expired:
            log.info("transactional ids expired", count=len(expired))

    def _expire(self, entry: TransactionEntry, now_ms: int) -> None:
        transaction = entry.transaction
        if entry.is_pending or entry.is_gone or not decisions.is_expired(transaction, now_ms, self._expiration_ms):
            return
        dead = decisions.expire(transaction)
        entry.move = dead

        def settle(error: ErrorCode) -> None:
            entry.move = None
            if error:
                _report(entry, error)
                return
            entry.transaction, entry.is_gone = dead, True
            self._stories.moved(entry, transaction)
            entry.answers.append(partial(self._table.forget, entry))

        self._writer.append(Write(entry, [(encode_key(entry.key), None)], settle))

    # ---- decisions

    def _decide(
        self,
        asked: Asked,
        entry: TransactionEntry,
        decide: _Decide,
        answer: _Answer,
        new_producer_id: int | None = None,
    ) -> None:
        def turn() -> bool:
            """Make the decision in a turn. False: it has to be repeated with a new producer id."""
            if entry.is_gone:
                raise KafkaError(ErrorCode.NOT_COORDINATOR)
            transaction = entry.transaction
            decision = decide(transaction, entry.is_pending, new_producer_id)
            if isinstance(decision, Move):
                self._write(entry, decision.to, answer, asked.request)
            elif isinstance(decision, Refused):
                if asked.may_wait and decision.error is ErrorCode.CONCURRENT_TRANSACTIONS and entry.ending is not None:
                    again = partial(self._decide_again, asked._replace(may_wait=False), entry, decide, answer)
                    if self.ends.waiters.add(entry.ending, again):
                        return True
                if decision.error is ErrorCode.PRODUCER_FENCED:
                    self._stories.fenced(entry, asked.request, asked.producer)
                entry.answers.append(partial(answer, decision.error, transaction))
            elif decision is DONE:
                entry.answers.append(partial(answer, ErrorCode.NONE, transaction))
            else:
                return False
            return True

        if not self._writer.turn(entry, turn):
            self._decide(asked, entry, decide, answer, self._new_producer_id())

    def _decide_again(self, asked: Asked, entry: TransactionEntry, decide: _Decide, answer: _Answer) -> None:
        try:
            self._decide(asked, entry, decide, answer)
        except KafkaError as error:
            answer(error.code, entry.transaction)

    def _write(self, entry: TransactionEntry, to: Transaction, answer: _Answer, why: str) -> None:
        """During a turn. Whatever becomes of the record, the move is over then."""
        record = encode_record(to)  # which may fail
        entry.move = to

        def settle(error: ErrorCode) -> None:
            entry.move = None
            if not error:
                before, entry.transaction = entry.transaction, to
                self._stories.moved(entry, before, why)
            elif entry.transaction.producer_epoch == NO_PRODUCER_EPOCH:
                # never written: as if it had not been requested
                entry.is_gone = True
                entry.answers.append(partial(self._table.forget, entry))
            entry.answers.append(partial(answer, client_error(error), to))
            if not error and to.state in PREPARED:
                self._begin_end(entry)

        self._writer.append(Write(entry, [record], settle))


def _report(entry: TransactionEntry, error: ErrorCode) -> None:
    if error:
        log.warning("transaction can't be aborted or expired yet", transactional_id=entry.key, error=error.name)
