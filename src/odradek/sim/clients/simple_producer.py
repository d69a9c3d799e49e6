"""An idempotent producer with one batch in flight in one partition, which it sends again until it is acknowledged.

Where a leader may be elected that lacks committed records, the producer is told that its sequence is wrong. It takes a
new id then, and goes on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.log.core.append_result import AppendResult
from odradek.broker.replication.core.refused_batches import RefusedBatches
from odradek.broker.replication.leader.delayed_produce import AppendOutcome
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import read_header
from odradek.sim.broker import SimulatedBroker
from odradek.sim.checkers.partition_history import PartitionHistory
from odradek.sim.clients.access import PRODUCE_TIMEOUT_MS, RECORDS_MAX, ClusterAccess, values_batch

_WRONG_SEQUENCE = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID})


@dataclass
class Producer:
    number: int
    partition: TopicPartition
    sequence: int = 0
    count: int = 0
    batch: bytes | None = None
    attempt: int = 0
    waits_for: SimulatedBroker | None = None
    connection: tuple[SimulatedBroker, RefusedBatches] | None = None
    records_max: int = RECORDS_MAX
    begins_anew: Callable[[], int] | None = None
    """Draws another id; None where records are not lost."""

    @property
    def is_waiting(self) -> bool:
        return self.waits_for is not None

    def next_batch(self, chance: Random, broker: SimulatedBroker) -> bytes:
        if self.batch is None:
            self.count = chance.randint(1, self.records_max)
            values = [f"{self.number}/{self.sequence + n}".encode() for n in range(self.count)]
            self.batch = values_batch(
                values, self.sequence, producer_id=self.number, producer_epoch=0, base_sequence=self.sequence
            )
        self.attempt += 1
        self.waits_for = broker
        return self.batch

    def send(self, chance: Random, broker: SimulatedBroker, cluster: ClusterAccess, history: PartitionHistory) -> None:
        batch = self.next_batch(chance, broker)
        attempt, tp = self.attempt, self.partition

        def give_up() -> None:
            if self.attempt == attempt:
                self.waits_for = None

        def answer(outcomes: list[AppendOutcome]) -> None:
            (outcome,) = outcomes
            result = outcome.code.name if isinstance(outcome, KafkaError) else f"at {outcome.first_offset}"
            partition = broker.replicas.partitions.get(tp)
            if isinstance(outcome, AppendResult) and partition is not None:
                crc = read_header(batch).crc
                history.acknowledge(broker.id, partition.leader_epoch, outcome.first_offset, crc)

            def deliver() -> None:
                if self.attempt != attempt or not self.is_waiting:
                    return
                self.waits_for = None
                if isinstance(outcome, AppendResult):
                    self.done()
                elif self.begins_anew is not None and outcome.code in _WRONG_SEQUENCE:
                    self.number, self.sequence, self.batch = self.begins_anew(), 0, None

            text = f"answer to producer {self.number}: {result}"
            cluster.network.post(text, deliver, give_up, sender=broker.id)

        def deliver() -> None:
            if not cluster.lives(broker):
                give_up()
                return
            done = broker.replicas.append(
                [(tp, memoryview(bytearray(batch)))],
                acks=-1,
                timeout_ms=PRODUCE_TIMEOUT_MS,
                api_version=9,
                refused=self._refused_by(broker),
                done=answer,
            )
            if done is not None:
                answer(done)

        text = f"{tp}: batch {self.sequence} of producer {self.number} at {broker.id}"
        cluster.network.post(text, deliver, give_up, to=broker.id, writes=True)

    def _refused_by(self, broker: SimulatedBroker) -> RefusedBatches:
        """Return the memory of its connection, which lasts as long as it writes to the same broker."""
        if self.connection is None or self.connection[0] is not broker:
            self.connection = broker, RefusedBatches()
        return self.connection[1]

    def done(self) -> None:
        self.sequence += self.count
        self.batch = None
