"""A model of librdkafka's idempotent producer: several batches in flight, and its rules for what goes wrong.

- Up to five batches in flight on one connection, in order; answers come in order too.
- The acknowledgement of a batch acknowledges all batches before it.
- After a retriable error it sends nothing new until all in flight are answered, then all unacknowledged batches again,
  from the first one on, cut as before and with the same sequences.
- OUT_OF_ORDER_SEQUENCE_NUMBER for a batch that is not the first unacknowledged one: it waits for all in flight, raises
  its epoch, and renumbers all that is unacknowledged from 0. For the first one: a fatal error.
- A race in it: when the partition has another leader and the connection to the former one fails, the thread of the new
  one may send the second unacknowledged batch before the first one is back in the queue.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.replication.core.refused_batches import RefusedBatches
from odradek.broker.replication.leader.delayed_produce import AppendOutcome
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import Record
from odradek.sim.broker import ORDERS, SimulatedBroker
from odradek.sim.network import Network

IN_FLIGHT_MAX = 5
PRODUCE_TIMEOUT_MS = 2_000
RACE = 0.1
_FATAL = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH})


@dataclass(eq=False)
class Batch:
    first: int
    count: int


@dataclass(eq=False)
class Request:
    batch: Batch
    outcome: AppendOutcome | None = None


@dataclass(eq=False)
class Connection:
    broker: SimulatedBroker
    refused: RefusedBatches = field(default_factory=RefusedBatches)
    unanswered: deque[Request] = field(default_factory=deque)
    is_open: bool = True

    def answered(self) -> Iterator[Request]:
        """Return the requests to answer now: answers leave in the order of their requests."""
        while self.unanswered and self.unanswered[0].outcome is not None:
            yield self.unanswered.popleft()


class PipelinedProducer:
    def __init__(self, number: int, network: Network, is_alive: Callable[[SimulatedBroker], bool]) -> None:
        self.number = number
        self.acknowledged = 0  # so many records, from the first one on
        self.fault: str | None = None
        self.connection: Connection | None = None
        self._network = network
        self._is_alive = is_alive
        self._last_broker: int | None = None
        self._epoch = 0
        self._epoch_base = 0  # the record that has sequence 0 in this epoch
        self._sent = 0
        self._unacknowledged: list[Batch] = []
        self._in_flight: list[Batch] = []
        self._drains = self._raises_epoch = False

    @property
    def is_done(self) -> bool:
        return not self._unacknowledged

    def value(self, number: int) -> bytes:
        return f"{self.number}/{number}".encode()

    # ---- sending

    def send(self, leader: SimulatedBroker, chance: Random, *, only_retries: bool = False) -> None:
        """The next batch to the broker, by the open connection if there is one."""
        if self._drains or self.fault or len(self._in_flight) >= IN_FLIGHT_MAX:
            return
        waiting = [batch for batch in self._unacknowledged if batch not in self._in_flight]
        if waiting:
            has_moved = self.connection is None and self._last_broker not in (None, leader.id)
            is_race = has_moved and len(waiting) > 1 and chance.random() < RACE
            batch = waiting[1] if is_race else waiting[0]
        elif only_retries:
            return
        else:
            batch = Batch(self._sent, chance.randint(1, 3))
            self._sent += batch.count
            self._unacknowledged.append(batch)
        if self.connection is None:
            self.connection = Connection(leader)
            self._last_broker = leader.id
        self._in_flight.append(batch)
        self._transmit(batch, self.connection)

    def _transmit(self, batch: Batch, connection: Connection) -> None:
        records = [Record(n, 1_700_000_000_000, None, self.value(batch.first + n)) for n in range(batch.count)]
        sequence = batch.first - self._epoch_base
        built = build_batch(records, producer_id=self.number, producer_epoch=self._epoch, base_sequence=sequence)

        request = Request(batch)

        def deliver() -> None:
            broker = connection.broker
            if not self._is_alive(broker):
                self.disconnect(connection)
                return
            connection.unanswered.append(request)
            done = broker.replicas.append(
                [(ORDERS, memoryview(bytearray(built)))],
                acks=-1,
                timeout_ms=PRODUCE_TIMEOUT_MS,
                api_version=9,
                refused=connection.refused,
                done=answer,
            )
            if done is not None:
                answer(done)

        def answer(outcomes: list[AppendOutcome]) -> None:
            (request.outcome,) = outcomes
            for answered in connection.answered():
                self._answer(answered, connection)

        text = f"record {batch.first} of producer {self.number}, sequence {sequence} of epoch {self._epoch}"
        self._network.post(f"{text} at {connection.broker.id}", deliver, channel=("requests", connection))

    # ---- answers

    def _answer(self, request: Request, connection: Connection) -> None:
        outcome = request.outcome
        assert outcome is not None
        told = outcome.code.name if isinstance(outcome, KafkaError) else f"at {outcome.first_offset}"
        text = f"answer to producer {self.number} for {request.batch.first}: {told}"
        channel = "answers", connection
        self._network.post(text, lambda: self._take(request.batch, connection, outcome), channel=channel)

    def _take(self, batch: Batch, connection: Connection, outcome: AppendOutcome) -> None:
        if not connection.is_open:
            return
        self._in_flight.remove(batch)
        if not isinstance(outcome, KafkaError):
            self._acknowledge(batch)
        elif outcome.code in _FATAL or (self._is_out_of_order(outcome) and batch is self._unacknowledged[0]):
            self.fault = f"producer {self.number} is told {outcome.code.name} for record {batch.first}: {outcome}"
        else:
            self._drains = True
            self._raises_epoch |= self._is_out_of_order(outcome)
        self._maybe_go_on()

    def _acknowledge(self, batch: Batch) -> None:
        """And all before it."""
        end = batch.first + batch.count
        self.acknowledged = max(self.acknowledged, end)
        self._unacknowledged = [each for each in self._unacknowledged if each.first >= end]

    def _is_out_of_order(self, error: KafkaError) -> bool:
        return error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def _maybe_go_on(self) -> None:
        if self._in_flight or not self._drains:
            return
        self._drains = False
        if self._raises_epoch:
            self._raises_epoch = False
            self._epoch += 1
            self._epoch_base = self._unacknowledged[0].first if self._unacknowledged else self._sent

    def disconnect(self, connection: Connection) -> None:
        """Cut the connection: requests on their way may still arrive; answers do not."""
        if connection is not self.connection or not connection.is_open:
            return
        connection.is_open = False
        self.connection = None
        self._in_flight.clear()
        self._drains = True
        self._maybe_go_on()
