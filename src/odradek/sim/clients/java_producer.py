"""A model of Kafka's Java producer with idempotence: requests for several partitions, retries by sequence.

- One connection per broker, up to five requests in flight on it, each with at most one batch of each partition.
- A batch gets its sequence when it is first sent, and keeps it. A batch that is to be sent again waits until it is the
  first one in its partition that is not acknowledged; new batches wait until no batch is to be sent again.
- Each batch is acknowledged by its own answer alone.
- OUT_OF_ORDER_SEQUENCE_NUMBER for a batch that is not the next one (by the last acknowledged sequence): it is sent
  again. For the next one the producer would raise its epoch and renumber the partition, which may store records
  twice: a fault, as no broker of a story has reason to answer so.
- DUPLICATE_SEQUENCE_NUMBER is success.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from odradek.base.errors import ErrorCode, KafkaError
from odradek.model.topology import TopicPartition
from odradek.sim.broker import SimulatedBroker
from odradek.sim.clients.access import (
    RECORDS_MAX,
    ClusterAccess,
    Connection,
    ProduceRequest,
    connected,
    transmit,
    values_batch,
)
from odradek.sim.clients.conversation import IN_FLIGHT_MAX, BatchSent, ClientKind, Conversation, error_of


@dataclass(eq=False)
class JavaBatch:
    tp: TopicPartition
    first: int
    count: int


class PartitionBatches:
    """The batches of one partition that are not acknowledged, in order: in flight, or to be sent again."""

    def __init__(self, tp: TopicPartition, records_max: int = RECORDS_MAX) -> None:
        self.tp = tp
        self._records_max = records_max
        self.sent = 0
        self.acknowledged: list[JavaBatch] = []
        self.unacknowledged: list[JavaBatch] = []
        self.retried: list[JavaBatch] = []

    @property
    def next_sequence_acknowledged(self) -> int:
        """The sequence behind the last one that was acknowledged."""
        return max((batch.first + batch.count for batch in self.acknowledged), default=0)

    def next_batch(self, chance: Random, *, only_retries: bool) -> JavaBatch | None:
        if self.retried:
            first = min(self.retried, key=lambda batch: batch.first)
            if first is not self.unacknowledged[0]:
                return None
            self.retried.remove(first)
            return first
        if only_retries or len(self.unacknowledged) >= IN_FLIGHT_MAX:
            return None
        batch = JavaBatch(self.tp, self.sent, chance.randint(1, self._records_max))
        self.sent += batch.count
        self.unacknowledged.append(batch)
        return batch


@dataclass(eq=False)
class JavaRequest(ProduceRequest):
    batches: list[JavaBatch]


class JavaProducer:
    def __init__(
        self,
        number: int,
        partitions: Sequence[TopicPartition],
        cluster: ClusterAccess,
        *,
        records_max: int = RECORDS_MAX,
    ) -> None:
        self.number = number
        self.fault: str | None = None
        self.partitions = {tp: PartitionBatches(tp, records_max) for tp in partitions}
        self.conversation = Conversation(ClientKind.JAVA)
        self.connections: dict[int, Connection] = {}
        self._in_flight: dict[Connection, list[JavaRequest]] = {}
        self._leaders: dict[TopicPartition, SimulatedBroker] = {}  # as the producer knows them
        self._cluster = cluster

    @property
    def is_done(self) -> bool:
        return not any(partition.unacknowledged for partition in self.partitions.values())

    @property
    def acknowledged(self) -> int:
        return sum(batch.count for p in self.partitions.values() for batch in p.acknowledged)

    def acknowledged_in(self, tp: TopicPartition) -> Sequence[int]:
        found = sorted(self.partitions[tp].acknowledged, key=lambda batch: batch.first)
        return [batch.first + n for batch in found for n in range(batch.count)]

    def value(self, tp: TopicPartition, number: int) -> bytes:
        return f"{self.number}/{tp.partition}/{number}".encode()

    def send(self, chance: Random, *, only_retries: bool = False) -> None:
        """Send a batch of each partition that one broker leads, as far as the producer knows."""
        by_broker: dict[int, list[PartitionBatches]] = {}
        for tp, partition in self.partitions.items():
            known = self._leaders.get(tp)
            if known is None or (not self._cluster.lives(known) or chance.random() < 0.5):
                known = self._cluster.elected_leader(tp)
            if known is not None:
                self._leaders[tp] = known
                by_broker.setdefault(known.id, []).append(partition)
        if not by_broker or self.fault:
            return
        broker_id = chance.choice(sorted(by_broker))
        connection = self._connection_to(self._leaders[by_broker[broker_id][0].tp])
        if len(self._in_flight[connection]) >= IN_FLIGHT_MAX:
            return
        found = [partition.next_batch(chance, only_retries=only_retries) for partition in by_broker[broker_id]]
        batches = [batch for batch in found if batch is not None]
        if batches:
            self._transmit(JavaRequest(batches), connection)

    def _connection_to(self, broker: SimulatedBroker) -> Connection:
        connection = connected(self.connections, broker, self.disconnect)
        self._in_flight.setdefault(connection, [])
        return connection

    def _transmit(self, request: JavaRequest, connection: Connection) -> None:
        self._in_flight[connection].append(request)
        sent = {batch.tp: BatchSent(self.number, 0, batch.first, batch.count) for batch in request.batches}
        self.conversation.sent(connection, connection.broker.id, request, sent)
        request.reply = lambda: self._answer(request, connection)
        built = [(batch.tp, self._build(batch)) for batch in request.batches]
        batches_text = ", ".join(f"{batch.tp} from {batch.first}" for batch in request.batches)
        text = f"batches of Java producer {self.number} at {connection.broker.id}: {batches_text}"
        transmit(self._cluster, connection, request, built, text, self.disconnect)

    def _build(self, batch: JavaBatch) -> bytes:
        values = [self.value(batch.tp, batch.first + n) for n in range(batch.count)]
        return values_batch(values, batch.first, producer_id=self.number, producer_epoch=0, base_sequence=batch.first)

    def _answer(self, request: JavaRequest, connection: Connection) -> None:
        outcomes = request.outcomes or []
        outcomes_text = ", ".join(
            o.code.name if isinstance(o, KafkaError) else f"at {o.first_offset}" for o in outcomes
        )
        text = f"answer to Java producer {self.number}: {outcomes_text}"
        self._cluster.network.post(text, lambda: self._take(request, connection), channel=("answers", connection))

    def _take(self, request: JavaRequest, connection: Connection) -> None:
        if not connection.is_open:
            return
        self._in_flight[connection].remove(request)
        answers = zip(request.batches, request.outcomes or (), strict=True)
        errors = {batch.tp: error_of(outcome) for batch, outcome in answers}
        self.conversation.answered(connection, request, errors)
        for batch, outcome in zip(request.batches, request.outcomes or (), strict=True):
            partition = self.partitions[batch.tp]
            if not isinstance(outcome, KafkaError) or outcome.code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                partition.unacknowledged.remove(batch)
                partition.acknowledged.append(batch)
            elif (
                outcome.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
                and batch.first == partition.next_sequence_acknowledged
            ):
                self.fault = f"Java producer {self.number} is told {outcome.code.name} for the next batch of {batch.tp}"
            elif outcome.code is ErrorCode.INVALID_PRODUCER_EPOCH:
                self.fault = f"Java producer {self.number} is told {outcome.code.name} for {batch.tp}"
            else:
                partition.retried.append(batch)

    def disconnect(self, connection: Connection) -> None:
        """Cut the connection: all requests in flight failed, as far as the producer can know."""
        if not connection.is_open:
            return
        connection.is_open = False
        self.conversation.closed(connection)
        if self.connections.get(connection.broker.id) is connection:
            del self.connections[connection.broker.id]
        for request in self._in_flight.pop(connection):
            for batch in request.batches:
                self.partitions[batch.tp].retried.append(batch)
