"""An idempotent producer with one batch in flight in one partition, which it sends again until it is acknowledged."""

from dataclasses import dataclass
from random import Random

from odradek.model.topology import TopicPartition
from odradek.sim.broker import SimulatedBroker
from odradek.sim.clients.access import values_batch


@dataclass
class Producer:
    number: int
    partition: TopicPartition
    sequence: int = 0
    count: int = 0
    batch: bytes | None = None
    attempt: int = 0
    waits_for: SimulatedBroker | None = None

    @property
    def is_waiting(self) -> bool:
        return self.waits_for is not None

    def next_batch(self, chance: Random, broker: SimulatedBroker) -> bytes:
        if self.batch is None:
            self.count = chance.randint(1, 3)
            values = [f"{self.number}/{self.sequence + n}".encode() for n in range(self.count)]
            self.batch = values_batch(
                values, self.sequence, producer_id=self.number, producer_epoch=0, base_sequence=self.sequence
            )
        self.attempt += 1
        self.waits_for = broker
        return self.batch

    def done(self) -> None:
        self.sequence += self.count
        self.batch = None
