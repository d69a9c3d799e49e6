"""Appends of transactional producers: the coordinator verifies a transaction before its first append to a partition.

Without the verification, a Produce that arrives after its transaction was aborted would open a transaction that never
ends, and the last stable offset would never advance (KAFKA-14402). The answer is valid only while no marker has been
written since the request (`verification`).

In version 2 of transactions (KIP-890, part 2) the coordinator is asked to make the partition part of the transaction.

While a producer waits for the answer, its later requests wait behind it: otherwise the second batch would overtake the
first one.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.base.value_classes import dataclass
from odradek.broker.log.core.verification import VERIFICATION_OFF, VerificationGuard
from odradek.broker.replication.core.verification_errors import produce_error
from odradek.broker.replication.leader.delayed_produce import AppendOutcome
from odradek.broker.replication.partition import Partition
from odradek.model.topology import TopicPartition

log = get_logger(__name__)

WAITING_MAX: Final = 64
"""More requests than a transactional producer has in flight."""

VerificationResult: TypeAlias = Mapping[TopicPartition, ErrorCode]


class TransactionVerifier(Protocol):
    """Asks the coordinator of a transactional id whether partitions are in its ongoing transaction, or to add them
    (KIP-890)."""

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        callback: Callable[[VerificationResult], None],
        *,
        add: bool,
    ) -> None:
        """`callback` gets an error code for each partition: exactly once, in bounded time, now or from any thread that
        holds no lock."""


class TransactionalProduce(NamedTuple):
    """The producer of a request's transactional batches."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    api_version: int = 0  # of Produce
    adds_partitions: bool = False


Guards: TypeAlias = Mapping[TopicPartition, VerificationGuard]
Errors: TypeAlias = Mapping[TopicPartition, KafkaError]


@dataclass(frozen=True, slots=True)
class TransactionalAppend:
    """The batches of one request. `partitions`: those with transactional batches. `write` appends with the guards, and
    refuses what has an error; it answers None if `done` gets the outcomes later."""

    transaction: TransactionalProduce
    partitions: Sequence[Partition]
    batches: int
    write: Callable[[Guards, Errors], list[AppendOutcome] | None]
    done: Callable[[list[AppendOutcome]], None]


class TransactionalAppends:
    def __init__(self, config: BrokerConfig, verifier: TransactionVerifier) -> None:
        self._verifier = verifier
        self.is_enabled = True
        self.reconfigure(config)
        self._waiting: dict[int, deque[TransactionalAppend]] = {}  # behind a verification, by producer id
        self._lock = threading.Lock()

    def reconfigure(self, config: BrokerConfig) -> None:
        self.is_enabled = config.transaction_partition_verification_enable

    def are_open(self, transaction: TransactionalProduce, partitions: Iterable[Partition]) -> bool:
        """Return whether the transaction is open in all of the partitions, and no earlier request of its producer
        waits: nothing has to be asked. The append looks again, under the lock of its partition."""
        _, producer_id, epoch, _, _ = transaction
        return producer_id not in self._waiting and all(
            partition.log.producers.is_in_transaction(producer_id, epoch) for partition in partitions
        )

    def submit(self, append: TransactionalAppend) -> list[AppendOutcome] | None:
        """The outcomes, or None: `done` gets them, exactly once."""
        producer_id = append.transaction.producer_id
        with self._lock:
            waiting = self._waiting.get(producer_id)
            if waiting is None:
                self._waiting[producer_id] = deque()
            elif len(waiting) < WAITING_MAX:
                waiting.append(append)
                return None
        if waiting is not None:
            return append.write({}, _all(append.partitions, ErrorCode.CONCURRENT_TRANSACTIONS, append))
        guards = self._begin(append)
        if guards is not None:
            if self._verify(append, guards):
                self._resume(producer_id)
            return None
        try:
            return append.write(self._off(append), {})
        finally:
            self._resume(producer_id)

    def verify_own(
        self,
        partition: Partition,
        transaction: TransactionalProduce,
        done: Callable[[ErrorCode, VerificationGuard | None], None],
    ) -> None:
        """Verify for coordinators of this broker, which append in a transaction too: `done` gets the guard to append
        with, or the coordinator's error. The guard is given back by `append_own`, or by
        `Partition.end_verification`."""
        tp, producer_id = partition.topic_partition, transaction.producer_id
        if not self._asks_for(transaction):
            done(ErrorCode.NONE, VERIFICATION_OFF)
            return
        try:
            guard = partition.begin_verification(producer_id, transaction.producer_epoch)
        except KafkaError as error:
            done(error.code, None)
            return
        if guard is None:
            done(ErrorCode.NONE, None)
            return

        def answered(codes: VerificationResult) -> None:
            code = codes.get(tp, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            if code is not ErrorCode.NONE:
                partition.end_verification(producer_id, guard)
            done(code, guard if code is ErrorCode.NONE else None)

        self._ask(transaction, (tp,), answered)

    def _asks_for(self, transaction: TransactionalProduce) -> bool:
        """Verification can be disabled; the partitions of a transaction have to be known all the same."""
        return self.is_enabled or transaction.adds_partitions

    # ---- serial execution

    def _begin(self, append: TransactionalAppend) -> dict[Partition, VerificationGuard] | None:
        """Return guards for partitions without the open transaction; None: no verification is needed."""
        transaction = append.transaction
        if not self._asks_for(transaction):
            return None
        guards: dict[Partition, VerificationGuard] = {}
        for partition in append.partitions:
            try:
                guard = partition.begin_verification(transaction.producer_id, transaction.producer_epoch)
            except KafkaError:
                continue  # the append finds the same
            if guard is not None:
                guards[partition] = guard
        return guards or None

    def _verify(self, append: TransactionalAppend, guards: dict[Partition, VerificationGuard]) -> bool:
        """Ask, and write with the answer. Return whether it has come already: then the caller resumes, or else a
        coordinator that answers at once would have each request resume within the one before."""
        one_is_done = False

        def is_second() -> bool:
            nonlocal one_is_done
            with self._lock:
                was_done, one_is_done = one_is_done, True
            return was_done

        def answered(codes: VerificationResult) -> None:
            try:
                self._verified(append, guards, codes)
            finally:
                if is_second():
                    self._resume(append.transaction.producer_id)

        partitions = [partition.topic_partition for partition in guards]
        self._ask(append.transaction, partitions, answered)
        return is_second()

    def _ask(
        self,
        transaction: TransactionalProduce,
        partitions: Collection[TopicPartition],
        answered: Callable[[VerificationResult], None],
    ) -> None:
        transactional_id, producer_id, producer_epoch, _, add = transaction
        is_answered = False

        def answered_once(codes: VerificationResult) -> None:
            nonlocal is_answered
            if not is_answered:
                is_answered = True
                answered(codes)

        try:
            self._verifier.verify(transactional_id, producer_id, producer_epoch, partitions, answered_once, add=add)
        except Exception:
            log.exception("verification failed", transactional_id=transactional_id)
            answered_once(dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE))

    def _verified(
        self, append: TransactionalAppend, guards: dict[Partition, VerificationGuard], codes: VerificationResult
    ) -> None:
        transaction = append.transaction
        by_partition: dict[TopicPartition, VerificationGuard] = {}
        errors: dict[TopicPartition, KafkaError] = {}
        for partition, guard in guards.items():
            tp = partition.topic_partition
            code = codes.get(tp, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            error = produce_error(code, transaction.api_version)
            if error is None:
                by_partition[tp] = guard
            else:
                errors[tp] = error
        try:
            self._write(append, by_partition, errors)
        finally:
            for partition, guard in guards.items():
                partition.end_verification(transaction.producer_id, guard)

    def _resume(self, producer_id: int) -> None:
        """Take up the requests that came meanwhile, up to the first one that has to ask again."""
        while True:
            with self._lock:
                waiting = self._waiting[producer_id]
                if not waiting:
                    del self._waiting[producer_id]
                    return
                append = waiting.popleft()
            guards = self._begin(append)
            if guards is None:
                self._write(append, self._off(append), {})
            elif not self._verify(append, guards):
                return

    def _write(self, append: TransactionalAppend, guards: Guards, errors: Errors) -> None:
        """A failure must not leave the client without an answer, nor the requests behind without their turn."""
        try:
            outcomes = append.write(guards, errors)
        except Exception:
            log.exception("transactional append failed", producer_id=append.transaction.producer_id)
            outcomes = [KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)] * append.batches
        if outcomes is not None:
            append.done(outcomes)

    def _off(self, append: TransactionalAppend) -> Guards:
        if self._asks_for(append.transaction):
            return {}
        return {partition.topic_partition: VERIFICATION_OFF for partition in append.partitions}


def _all(partitions: Iterable[Partition], code: ErrorCode, append: TransactionalAppend) -> Errors:
    error = produce_error(code, append.transaction.api_version)
    assert error is not None
    return {partition.topic_partition: error for partition in partitions}
