"""The cluster as clients of the simulation see it, and their connections."""

from collections import deque
from collections.abc import Iterator, Sequence
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
KEYS = 5
"""So many keys has a producer in a compacted topic."""


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
