"""Producers of the simulation."""

from dataclasses import dataclass
from random import Random

from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import Record
from odradek.sim.broker import SimulatedBroker


@dataclass
class Producer:
    """Idempotent, with one batch in flight, which it sends again until it is acknowledged."""

    number: int
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
            records = [Record(n, 1_700_000_000_000, None, value) for n, value in enumerate(values)]
            self.batch = build_batch(records, producer_id=self.number, producer_epoch=0, base_sequence=self.sequence)
        self.attempt += 1
        self.waits_for = broker
        return self.batch

    def done(self) -> None:
        self.sequence += self.count
        self.batch = None
