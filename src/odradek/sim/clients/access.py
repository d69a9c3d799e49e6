"""The cluster as clients of the simulation see it, and their connections."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from odradek.broker.replication.core.refused_batches import RefusedBatches
from odradek.broker.replication.leader.delayed_produce import AppendOutcome
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import Record
from odradek.sim.broker import SimulatedBroker
from odradek.sim.network import Network

PRODUCE_TIMEOUT_MS = 2_000
TIMESTAMP_MS = 1_700_000_000_000
RECORDS_MAX = 3
"""Number of records of a batch, at most, unless the story has another number."""
KEYS = 5
"""Number of keys of a producer in a compacted topic."""


class ClusterAccess(Protocol):
    network: Network

    def elected_leader(self, tp: TopicPartition) -> SimulatedBroker | None:
        """Return the leader by ZooKeeper, if it lives; it need not have heard of its election yet."""

    def lives(self, broker: SimulatedBroker) -> bool: ...

    def coordinates(self, broker: SimulatedBroker, tp: TopicPartition) -> bool:
        """Return whether the broker is the elected leader and knows it: no other one can commit."""


def values_batch(
    values: Sequence[bytes], first: int, *, producer_id: int, producer_epoch: int, base_sequence: int
) -> bytes:
    """Records of a producer. Their keys repeat: in a compacted topic, the last one of each is what must stay."""
    records = [
        Record(n, TIMESTAMP_MS, f"{producer_id}-{(first + n) % KEYS}".encode(), value) for n, value in enumerate(values)
    ]
    return build_batch(records, producer_id=producer_id, producer_epoch=producer_epoch, base_sequence=base_sequence)


@dataclass(eq=False)
class ProduceRequest:
    outcomes: list[AppendOutcome] | None = field(default=None, init=False)
    reply: Callable[[], None] = field(default=lambda: None, init=False)
    """Sends the answer to the producer."""


@dataclass(eq=False)
class Connection:
    """Requests of a connection are served in order, and so are their answers."""

    broker: SimulatedBroker
    refused: RefusedBatches = field(default_factory=RefusedBatches)
    unanswered: deque[ProduceRequest] = field(default_factory=deque)
    is_open: bool = True

    def answered(self) -> Iterator[ProduceRequest]:
        """Return the requests to answer now: answers leave in the order of their requests."""
        while self.unanswered and self.unanswered[0].outcomes is not None:
            yield self.unanswered.popleft()


def connected(
    connections: dict[int, Connection], broker: SimulatedBroker, disconnect: Callable[[Connection], None]
) -> Connection:
    """Return the connection to the broker; one to an earlier life of it is given up."""
    connection = connections.get(broker.id)
    if connection is not None and connection.broker is not broker:
        disconnect(connection)
        connection = None
    if connection is None:
        connection = connections[broker.id] = Connection(broker)
    return connection


def transmit(
    cluster: ClusterAccess,
    connection: Connection,
    request: ProduceRequest,
    batches: Sequence[tuple[TopicPartition, bytes]],
    text: str,
    disconnect: Callable[[Connection], None],
) -> None:
    """Post a Produce request with acks=all to the connection's broker; a broker that is dead then is disconnected."""

    def deliver() -> None:
        if not cluster.lives(connection.broker):
            disconnect(connection)
            return
        connection.unanswered.append(request)
        done = connection.broker.replicas.append(
            [(tp, memoryview(bytearray(data))) for tp, data in batches],
            acks=-1,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            api_version=9,
            refused=connection.refused,
            done=answer,
        )
        if done is not None:
            answer(done)

    def answer(outcomes: list[AppendOutcome]) -> None:
        request.outcomes = outcomes
        for answered in connection.answered():
            answered.reply()

    cluster.network.post(text, deliver, channel=("requests", connection), to=connection.broker.id, writes=True)
