"""A broker's replicas with transactional producers; the transaction coordinator is played by the test."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from replica_stage import ORDERS, ORDERS_ID, ReplicaStage

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.replication.committed_log import READ_COMMITTED
from odradek.broker.replication.core.refused_batches import RefusedBatches
from odradek.broker.replication.leader.delayed_produce import AppendOutcome
from odradek.broker.replication.leader.fetch_reader import FetchOutcome, FetchTarget, FetchTerms
from odradek.broker.replication.leader.transactional_appends import TransactionalProduce, VerificationResult
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import Record
from odradek.protocol.transaction_markers import EndTransactionMarker

NOW_MS = 1_700_000_000_000


@dataclass
class Question:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: Collection[TopicPartition]
    callback: Callable[[VerificationResult], None]
    add: bool = False

    def answer(self, code: ErrorCode = ErrorCode.NONE) -> None:
        self.callback(dict.fromkeys(self.partitions, code))


class Coordinator:
    """Says yes at once, unless it is asked to wait: then the test answers the questions."""

    def __init__(self) -> None:
        self.waits = False
        self.asked: list[Question] = []

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
        question = Question(transactional_id, producer_id, producer_epoch, partitions, callback, add)
        self.asked.append(question)
        if not self.waits:
            question.answer()


class TransactionStage(ReplicaStage):
    def __init__(self, *directories: Path, **topic: str) -> None:
        self.coordinator = Coordinator()
        super().__init__(*directories, verifier=self.coordinator, **topic)
        self.refused = RefusedBatches()  # of the one connection that there is
        self.become(0, 0)

    def send(
        self,
        value: str,
        sequence: int,
        *,
        producer_id: int = 1,
        epoch: int = 0,
        transactional: bool = True,
        in_transaction: bool | None = None,
        version: int = 11,
        acks: int = 1,
        timestamp: int = NOW_MS,
    ) -> list[AppendOutcome]:
        """A batch of one record. The list stays empty until it is answered. `in_transaction`: whether the request has
        transactional batches."""
        records = memoryview(
            bytearray(
                build_batch(
                    [Record(0, timestamp, None, value.encode())],
                    producer_id=producer_id,
                    producer_epoch=epoch,
                    base_sequence=sequence,
                    transactional=transactional,
                )
            )
        )
        answered: list[AppendOutcome] = []
        produce = TransactionalProduce("payments", producer_id, epoch, version, version >= 12)
        at_once = self.replicas.append(
            [(ORDERS, records)],
            acks=acks,
            timeout_ms=5_000,
            api_version=version,
            refused=self.refused,
            done=answered.extend,
            transaction=produce if (transactional if in_transaction is None else in_transaction) else None,
        )
        answered.extend(at_once or [])
        return answered

    def end(
        self,
        *,
        committed: bool = True,
        producer_id: int = 1,
        epoch: int = 0,
        coordinator_epoch: int = 0,
        bumps_epoch: bool = False,
    ) -> list[ErrorCode]:
        """The marker's outcome. The list stays empty until it is known."""
        answered: list[ErrorCode] = []
        marker = EndTransactionMarker(producer_id, epoch, coordinator_epoch, committed, bumps_epoch)
        self.replicas.append_markers(ORDERS, [marker], timeout_ms=5_000, done=answered.extend)
        return answered

    def replicate(self) -> None:
        """Both followers have everything, and say so."""
        end = self.partition.log.log_end_offset
        for replica in (1, 2):
            self.fetch(end, replica=replica, epoch=self.partition.leader_epoch)

    @property
    def stable(self) -> int:
        return self.partition.committed.last_stable_offset(self.partition.high_watermark)

    def read_committed(self, offset: int = 0, *, wait_ms: int = 0) -> list[FetchOutcome]:
        answered: list[FetchOutcome] = []
        target = FetchTarget(ORDERS, ORDERS_ID, offset, 1_000_000)
        self.replicas.fetch([target], FetchTerms(wait_ms, 1, 1_000_000, READ_COMMITTED), answered.extend)
        return answered


def code_of(outcomes: list[AppendOutcome]) -> ErrorCode | None:
    """None: not answered yet."""
    if not outcomes:
        return None
    (outcome,) = outcomes
    return outcome.code if isinstance(outcome, KafkaError) else ErrorCode.NONE
