"""A model of librdkafka's idempotent producer: several batches in flight, and its rules for what goes wrong.

- One connection per broker, up to five batches in flight on it, one partition in each request; answers come in order.
- The acknowledgement of a batch acknowledges all batches before it in its partition.
- After a retriable error it sends nothing new to the partition until all in flight there are answered, then all
  unacknowledged batches again, from the first one on, cut as before and with the same sequences.
- OUT_OF_ORDER_SEQUENCE_NUMBER for a batch that is not the first unacknowledged one: it waits for all in flight, in all
  partitions, raises its epoch, and renumbers all that is unacknowledged from 0. For the first one: a fatal error.
- A race in it: when the partition has another leader and the connection to the former one fails, the thread of the new
  one may send the second unacknowledged batch before the first one is back in the queue.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.replication.leader.delayed_produce import AppendOutcome
from odradek.model.topology import TopicPartition
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

_FATAL = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH})


@dataclass(eq=False)
class LibrdkafkaBatch:
    first: int
    count: int
    broker: int | None = None  # that it was sent to last


class PartitionQueue:
    """Batches of one partition."""

    def __init__(self, tp: TopicPartition) -> None:
        self.tp = tp
        self.acknowledged = 0  # so many records, from the first one on
        self.sent = 0
        self.epoch_base = 0  # the record that has sequence 0 in this epoch
        self.unacknowledged: list[LibrdkafkaBatch] = []
        self.in_flight: list[LibrdkafkaBatch] = []
        self.drains = False
        self.last_broker: int | None = None

    def waiting(self) -> list[LibrdkafkaBatch]:
        return [batch for batch in self.unacknowledged if batch not in self.in_flight]

    def acknowledge(self, batch: LibrdkafkaBatch) -> None:
        """Acknowledge the batch and all before it."""
        end = batch.first + batch.count
        self.acknowledged = max(self.acknowledged, end)
        self.unacknowledged = [each for each in self.unacknowledged if each.first >= end]


@dataclass(eq=False)
class LibrdkafkaRequest(ProduceRequest):
    queue: PartitionQueue
    batch: LibrdkafkaBatch


class LibrdkafkaProducer:
    def __init__(
        self,
        number: int,
        partitions: Sequence[TopicPartition],
        cluster: ClusterAccess,
        *,
        race: float = 0.0,
        records_max: int = RECORDS_MAX,
    ) -> None:
        """`race`: how often, of all chances, the second unacknowledged batch is sent first."""
        self.number = number
        self._records_max = records_max
        self._race = race
        self.fault: str | None = None
        self.queues = {tp: PartitionQueue(tp) for tp in partitions}
        self.connections: dict[int, Connection] = {}  # by broker
        self.conversation = Conversation(ClientKind.LIBRDKAFKA)
        self._cluster = cluster
        self._network = cluster.network
        self._epoch = 0
        self._raises_epoch = False

    @property
    def is_done(self) -> bool:
        return not any(queue.unacknowledged for queue in self.queues.values())

    @property
    def acknowledged(self) -> int:
        return sum(queue.acknowledged for queue in self.queues.values())

    def acknowledged_in(self, tp: TopicPartition) -> Sequence[int]:
        return range(self.queues[tp].acknowledged)

    def value(self, tp: TopicPartition, number: int) -> bytes:
        return f"{self.number}/{tp.partition}/{number}".encode()

    # ---- sending

    def send(self, tp: TopicPartition, chance: Random, *, only_retries: bool = False) -> None:
        """The next batch of the partition, to the broker that it was sent to last or to the elected leader."""
        queue = self.queues[tp]
        leader = self._cluster.elected_leader(tp)
        connection = self.connections.get(queue.last_broker) if queue.last_broker is not None else None
        if connection is not None and connection.broker is not leader and chance.random() < 0.5:
            self.disconnect(connection)  # it has learnt that another one leads
            connection = None
        target = connection.broker if connection is not None else leader
        if target is None or queue.drains or self._raises_epoch or self.fault:
            return
        waiting = queue.waiting()
        if waiting:
            has_moved = waiting[0].broker not in (None, target.id)
            is_race = has_moved and len(waiting) > 1 and chance.random() < self._race
            batch = waiting[1] if is_race else waiting[0]
        elif only_retries:
            return
        else:
            batch = LibrdkafkaBatch(queue.sent, chance.randint(1, self._records_max))
        connection = connected(self.connections, target, self.disconnect)
        if self._in_flight_at(target.id) >= IN_FLIGHT_MAX:
            return
        if not waiting:
            queue.sent += batch.count
            queue.unacknowledged.append(batch)
        queue.last_broker = batch.broker = target.id
        queue.in_flight.append(batch)
        self._transmit(queue, batch, connection)

    def _in_flight_at(self, broker_id: int) -> int:
        return sum(len(queue.in_flight) for queue in self.queues.values() if queue.last_broker == broker_id)

    def _transmit(self, queue: PartitionQueue, batch: LibrdkafkaBatch, connection: Connection) -> None:
        values = [self.value(queue.tp, batch.first + n) for n in range(batch.count)]
        sequence = batch.first - queue.epoch_base
        built = values_batch(
            values, batch.first, producer_id=self.number, producer_epoch=self._epoch, base_sequence=sequence
        )
        request = LibrdkafkaRequest(queue, batch)
        sent = {queue.tp: BatchSent(self.number, self._epoch, sequence, batch.count)}
        self.conversation.sent(connection, connection.broker.id, request, sent)
        request.reply = lambda: self._answer(request, connection)
        text = (
            f"{queue.tp}: record {batch.first} of librdkafka {self.number}, sequence {sequence} of epoch {self._epoch} "
            f"at {connection.broker.id}"
        )
        transmit(self._cluster, connection, request, [(queue.tp, built)], text, self.disconnect)

    # ---- answers

    def _answer(self, request: LibrdkafkaRequest, connection: Connection) -> None:
        assert request.outcomes is not None
        (outcome,) = request.outcomes
        queue = request.queue
        result = outcome.code.name if isinstance(outcome, KafkaError) else f"at {outcome.first_offset}"
        text = f"answer to librdkafka {self.number} for {queue.tp}, {request.batch.first}: {result}"
        channel = "answers", connection
        self._network.post(text, lambda: self._take(request, connection, outcome), channel=channel)

    def _take(self, request: LibrdkafkaRequest, connection: Connection, outcome: AppendOutcome) -> None:
        if not connection.is_open:
            return
        queue, batch = request.queue, request.batch
        self.conversation.answered(connection, request, {queue.tp: error_of(outcome)})
        queue.in_flight.remove(batch)
        if not isinstance(outcome, KafkaError):
            queue.acknowledge(batch)
        elif outcome.code in _FATAL or (self._is_out_of_order(outcome) and batch is queue.unacknowledged[0]):
            self.fault = f"librdkafka {self.number} is told {outcome.code.name} for record {batch.first}: {outcome}"
        else:
            queue.drains = True
            self._raises_epoch |= self._is_out_of_order(outcome)
        self._maybe_go_on()

    def _is_out_of_order(self, error: KafkaError) -> bool:
        return error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def _maybe_go_on(self) -> None:
        for queue in self.queues.values():
            if not queue.in_flight:
                queue.drains = False
        if self._raises_epoch and not any(queue.in_flight for queue in self.queues.values()):
            self._raises_epoch = False
            self._epoch += 1
            for queue in self.queues.values():
                queue.epoch_base = queue.unacknowledged[0].first if queue.unacknowledged else queue.sent

    def disconnect(self, connection: Connection) -> None:
        """Cut the connection: requests on their way may still arrive; answers do not."""
        if not connection.is_open:
            return
        connection.is_open = False
        self.conversation.closed(connection)
        if self.connections.get(connection.broker.id) is connection:
            del self.connections[connection.broker.id]
        for queue in self.queues.values():
            if queue.last_broker == connection.broker.id and queue.in_flight:
                queue.in_flight.clear()
                queue.drains = True
        self._maybe_go_on()
