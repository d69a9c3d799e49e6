"""The partitions that this broker hosts, as handlers see them: append, fetch, delete records, and wait.

A change by one request may complete waiting requests: the thread that made the change completes them, without a lock.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias
from uuid import UUID

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.core.append_result import AppendResult
from odradek.broker.log.core.check_budget import UNBOUNDED, CheckBudget
from odradek.broker.log.core.validation import CheckedRecords
from odradek.broker.log.core.verification import VERIFICATION_OFF, VerificationGuard
from odradek.broker.purgatory.purgatory import Purgatory
from odradek.broker.purgatory.reaper import ExpirationReaper
from odradek.broker.replication.core.append_in_doubt import append_in_doubt
from odradek.broker.replication.core.isr import IsrChange
from odradek.broker.replication.core.outcomes import COMMITTED, Advance, Appended
from odradek.broker.replication.core.refused_batches import RefusedBatches
from odradek.broker.replication.leader.delayed_delete import DelayedDelete, DeleteOutcomes
from odradek.broker.replication.leader.delayed_fetch import DelayedFetch, is_enough
from odradek.broker.replication.leader.delayed_produce import AppendOutcome, Awaited, DelayedProduce
from odradek.broker.replication.leader.fetch_reader import (
    FetchOutcome,
    FetchReader,
    FetchTarget,
    FetchTerms,
)
from odradek.broker.replication.leader.preferred_replica import preferred_replica_chooser
from odradek.broker.replication.leader.transactional_appends import (
    Errors,
    Guards,
    TransactionalAppend,
    TransactionalAppends,
    TransactionalProduce,
    TransactionVerifier,
)
from odradek.broker.replication.partition import Partition
from odradek.broker.replication.replication_quota import ReplicationQuotas
from odradek.model.metadata_image import MetadataCache
from odradek.model.topology import ZERO_UUID, LeaderAndIsr, TopicPartition
from odradek.protocol.record_batch import TRANSACTIONAL_BIT, read_header
from odradek.protocol.transaction_markers import EndTransactionMarker

Batch: TypeAlias = tuple[TopicPartition, memoryview | KafkaError]
"""Batches to append by partition; one that the handler refused already keeps its error, in its place."""

Checked: TypeAlias = tuple[Partition, CheckedRecords]
"""A batch that may be written to the partition."""

NO_GUARDS: Guards = {}
NO_ERRORS: Errors = {}
NO_RECORDS = memoryview(b"")

Done: TypeAlias = Callable[[ErrorCode, AppendResult | None], None]


class PartitionTable:
    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        metadata: MetadataCache,
        reaper: ExpirationReaper,
        clock: Clock,
        submit_isr_change: Callable[[IsrChange], None],
        verifier: TransactionVerifier,
    ) -> None:
        """`submit_isr_change` sends an ISR change to the controller; the answer is passed to `isr_answered`. `verifier`
        asks the coordinator of a transaction before its first append to a partition.
        """
        self.partitions: dict[TopicPartition, Partition] = {}
        self.offline: set[TopicPartition] = set()
        self.quotas = ReplicationQuotas(broker_id, config, clock)
        self._submit_isr_change = submit_isr_change
        self.transactions = TransactionalAppends(config, verifier)
        self._metadata = metadata
        self._produces: Purgatory[TopicPartition] = Purgatory("produce", reaper)
        self._fetches: Purgatory[TopicPartition] = Purgatory("fetch", reaper)
        self._deletes: Purgatory[TopicPartition] = Purgatory("delete records", reaper)
        chooser = preferred_replica_chooser(config, metadata)
        self._reader = FetchReader(self.partitions, self.find, clock, self.quotas, self.follow_up, chooser)

    def find(self, tp: TopicPartition) -> Partition:
        try:
            return self.partitions[tp]
        except KeyError:
            if tp in self.offline:
                code = ErrorCode.KAFKA_STORAGE_ERROR
            elif self._metadata.image.partition(tp) is not None:
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            else:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            raise KafkaError(code) from None

    def topic_names(self) -> dict[UUID, str]:
        """Names of the topics that are hosted here, whether the metadata has them or not."""
        names = {partition.topic_id: tp.topic for tp, partition in self.partitions.copy().items()}
        names.pop(ZERO_UUID, None)
        return names

    def high_watermarks(self) -> dict[TopicPartition, int]:
        return {tp: partition.high_watermark for tp, partition in self.partitions.copy().items()}

    # ---- requests

    def append(
        self,
        batches: Sequence[Batch],
        *,
        acks: int,
        timeout_ms: int,
        api_version: int,
        refused: RefusedBatches,
        budget: CheckBudget = UNBOUNDED,
        done: Callable[[list[AppendOutcome]], None],
        transaction: TransactionalProduce | None = None,
        written: list[TopicPartition] | None = None,
    ) -> list[AppendOutcome] | None:
        """Append the batches of a producer. An outcome for each batch in order; or None, if acks is -1 and the ISR
        doesn't have all of it: then `done` gets them, exactly once, when it has or the time is up.

        All batches are checked before the first is written: TakesLong means that nothing was. `refused` is the
        connection's memory: a batch behind a refused one is refused too. `transaction` is given if a batch is
        transactional; then the answer may also wait for the transaction's coordinator.

        Fetches that wait for the records are completed here; with `written`, the caller completes those of the
        partitions that it finds there (`complete_fetches`) after it has answered.
        """
        checked = self._check_all(batches, acks, api_version, budget)
        if transaction is None:
            return self._write_all(batches, checked, acks, timeout_ms, refused, done, answered=written)
        partitions = [found[0] for found in checked if not isinstance(found, KafkaError) and _is_transactional(found)]
        if self.transactions.are_open(transaction, partitions):  # true of all batches of a transaction but the first
            return self._write_all(batches, checked, acks, timeout_ms, refused, done, answered=written)
        write = partial(self._write_all, batches, checked, acks, timeout_ms, refused, done)
        return self.transactions.submit(TransactionalAppend(transaction, partitions, len(batches), write, done))

    def _write_all(
        self,
        batches: Sequence[Batch],
        checked: Sequence[Checked | KafkaError],
        acks: int,
        timeout_ms: int,
        refused: RefusedBatches,
        done: Callable[[list[AppendOutcome]], None],
        guards: Guards = NO_GUARDS,
        errors: Errors = NO_ERRORS,
        answered: list[TopicPartition] | None = None,
    ) -> list[AppendOutcome] | None:
        before = self._produces.last_event
        outcomes: list[AppendOutcome] = []
        awaited: list[Awaited] = []
        written: list[TopicPartition] = []
        for (tp, records), found in zip(batches, checked, strict=True):
            if isinstance(records, KafkaError):
                outcomes.append(records)
                continue
            if errors and tp in errors:
                found = errors[tp]
            if isinstance(found, KafkaError):
                outcomes.append(refused.explain(tp, records, found))
                continue
            partition, batch = found
            guard = guards.get(tp) if guards else None
            may_have_moved = partition.led_since > 0 or len(partition.replicas) > 1
            appended: Appended | KafkaError
            try:
                if refused:
                    refused.check(tp, records, partition.log.producers)
                appended = partition.append(
                    batch, len(records), acks=acks, may_begin_anywhere=not may_have_moved, guard=guard
                )
            except KafkaError as error:
                again = partial(partition.append, batch, len(records), acks=acks, guard=guard)
                states = partition.log.producers if may_have_moved else None
                appended = append_in_doubt(tp, records, error, states, refused, again)
                if isinstance(appended, KafkaError):
                    outcomes.append(appended)
                    continue
            result, awaited_in = appended
            if refused:
                refused.forget(tp, records)
            if acks == -1 and awaited_in != COMMITTED:
                slot = len(outcomes)
                awaited.append(Awaited(slot, partition, result.last_offset + 1, awaited_in, records))
            outcomes.append(result)
            written.append(tp)
        # After the last batch: a fetch that waits for several of the partitions gets them in one answer.
        if not awaited and answered is not None:
            answered += written
        else:
            self.complete_fetches(written)
        if not awaited:
            return outcomes
        delayed = DelayedProduce(timeout_ms, outcomes, awaited, done, refused)
        self._produces.watch(delayed, delayed.keys, before)
        return None

    def complete_fetches(self, tps: Iterable[TopicPartition]) -> None:
        """Complete the fetches that wait for records of these partitions."""
        if self._fetches.note_event():
            for tp in tps:
                self._fetches.check_and_complete(tp)

    def _check_all(
        self, batches: Sequence[Batch], acks: int, api_version: int, budget: CheckBudget
    ) -> list[Checked | KafkaError]:
        checked: list[Checked | KafkaError] = []
        for tp, records in batches:
            if isinstance(records, KafkaError):
                checked.append(records)
                continue
            try:
                partition = self.partitions.get(tp) or self.find(tp)
                found = partition.check(records, acks=acks, api_version=api_version, budget=budget)
                checked.append((partition, found))
            except KafkaError as error:
                # The frames in which it was raised hold what the batch had unfolded into, for as long as it is kept.
                error.__traceback__ = error.__context__ = None
                checked.append(error)
        return checked

    def append_own(
        self,
        tp: TopicPartition,
        records: memoryview,
        *,
        timeout_ms: int,
        done: Done,
        acks: int = -1,
        guard: VerificationGuard | None = None,
    ) -> None:
        """Append a coordinator's records: the state that it is rebuilt from. `done` is called exactly once, under no
        lock of ours: now, or when the ISR has it or the time is up. `guard`: from `transactions.verify_own`."""

        def append(partition: Partition) -> Appended:
            try:
                return partition.append_own(records, acks=acks, guard=guard)
            finally:
                if guard is not None and guard is not VERIFICATION_OFF:
                    partition.end_verification(read_header(records).producer_id, guard)

        self._append_and_wait(tp, append, records, timeout_ms, done, acks)

    def append_markers(
        self,
        tp: TopicPartition,
        markers: Sequence[EndTransactionMarker],
        *,
        timeout_ms: int,
        done: Callable[[list[ErrorCode]], None],
        written: list[TopicPartition] | None = None,
    ) -> None:
        """End transactions in the partition; `done` gets a code for each, as for `append_own`; `written` as for
        `append`."""
        codes: list[ErrorCode] = []

        def append(partition: Partition) -> Appended:
            appended, found = partition.append_markers(markers)
            codes.extend(found)
            return appended

        def settled(error: ErrorCode, _: AppendResult | None) -> None:
            done([code or error for code in codes] or [error] * len(markers))

        self._append_and_wait(tp, append, NO_RECORDS, timeout_ms, settled, -1, written)

    def await_commit(self, tp: TopicPartition, *, timeout_ms: int, done: Done) -> None:
        """Wait until the records that are in the log now are committed; `done` as for `append_own`."""

        def append_nothing(partition: Partition) -> Appended:
            with partition.lock:
                return Appended(partition.leader_log().nothing_appended(), partition.led_since)

        self._append_and_wait(tp, append_nothing, NO_RECORDS, timeout_ms, done, -1)

    def _append_and_wait(
        self,
        tp: TopicPartition,
        append: Callable[[Partition], Appended],
        records: memoryview,
        timeout_ms: int,
        done: Done,
        acks: int,
        written: list[TopicPartition] | None = None,
    ) -> None:
        try:
            partition = self.find(tp)
            result, awaited_in = append(partition)
        except KafkaError as error:
            done(error.code, None)
            return
        if written is None:
            self._fetches.check_and_complete(tp)
        else:
            written.append(tp)
        if acks != -1 or awaited_in == COMMITTED:
            done(ErrorCode.NONE, result)
            return

        def settled(outcomes: list[AppendOutcome]) -> None:
            (outcome,) = outcomes
            if isinstance(outcome, KafkaError):
                done(outcome.code, None)
            else:
                done(ErrorCode.NONE, outcome)

        awaited = Awaited(0, partition, result.last_offset + 1, awaited_in, records)
        self._produces.watch(DelayedProduce(timeout_ms, [result], [awaited], settled, RefusedBatches()), (tp,))

    def fetch(
        self, targets: Sequence[FetchTarget], terms: FetchTerms, answer: Callable[[list[FetchOutcome]], None]
    ) -> None:
        """`answer` is called exactly once: now, when enough has arrived, or when the wait is over."""
        before = self._fetches.last_event
        outcomes = self._reader.read(targets, terms)

        def counted_answer(outcomes: list[FetchOutcome]) -> None:
            self._count_bytes_out(outcomes, is_follower=terms.replica_id >= 0)
            answer(outcomes)

        if terms.max_wait_ms <= 0 or not targets or is_enough(outcomes, terms.min_bytes):
            counted_answer(outcomes)
            return
        delayed = DelayedFetch(self._reader, targets, terms, counted_answer)
        self._fetches.watch(delayed, delayed.partitions, before)

    def _count_bytes_out(self, outcomes: Iterable[FetchOutcome], *, is_follower: bool) -> None:
        for outcome in outcomes:
            if size := outcome.size:
                tp = outcome.target.partition
                if is_follower:
                    self.quotas.record_leader(tp, size)
                elif (partition := self.partitions.get(tp)) is not None:
                    partition.bytes_out += size

    def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, timeout_ms: int, done: Callable[[DeleteOutcomes], None]
    ) -> None:
        """Advance log starts. `done` is called exactly once: when all live replicas have done it, or when the time is
        up."""
        outcomes: DeleteOutcomes = {}
        awaited: dict[TopicPartition, tuple[Partition, int]] = {}
        for tp, offset in offsets.items():
            try:
                partition = self.find(tp)
                awaited[tp] = partition, partition.delete_records_before(offset)
            except KafkaError as error:
                outcomes[tp] = error
        self._deletes.try_complete_else_watch(DelayedDelete(timeout_ms, outcomes, awaited, done), list(awaited))

    # ---- waiting requests

    def wake(self, tp: TopicPartition) -> None:
        """Complete operations that wait for a change of the partition."""
        self._produces.check_and_complete(tp)
        self._fetches.check_and_complete(tp)
        self._deletes.check_and_complete(tp)

    def follow_up(self, tp: TopicPartition, advance: Advance) -> None:
        """Carry out the effects of a partition's change."""
        if advance.committed:
            self._produces.check_and_complete(tp)
            self._fetches.check_and_complete(tp)
        if self._deletes.waiting:
            self._deletes.check_and_complete(tp)
        if advance.change is not None:
            self._submit_isr_change(advance.change)

    def isr_answered(self, change: IsrChange, answer: LeaderAndIsr | ErrorCode) -> None:
        """Take the controller's answer to a change that was submitted."""
        partition = self.partitions.get(change.partition)
        if partition is not None:
            self.follow_up(change.partition, partition.isr_answered(change, answer))


def _is_transactional(checked: Checked) -> bool:
    return any(batch.header.attributes & TRANSACTIONAL_BIT for batch in checked[1].batches)
