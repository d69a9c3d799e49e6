"""Three brokers with real logs and replicas; a test is their controller, and carries their fetches."""

from pathlib import Path
from typing import Any
from uuid import UUID

from odradek.base.clock import ManualClock
from odradek.base.errors import ErrorCode
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.broker.replication.core.refused_batches import RefusedBatches
from odradek.broker.replication.leader.fetch_reader import FetchOutcome, FetchTarget, FetchTerms
from odradek.broker.replication.partition import Partition
from odradek.model.metadata_image import MetadataImage
from odradek.model.topology import Broker, Endpoint, LeaderAndIsr, PartitionDirective, TopicPartition
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import Record
from odradek.sim.broker import SimulatedBroker
from odradek.sim.checkers.log_reading import LogEntry, LogReading
from odradek.sim.replica_fetchers import wire_data

ORDERS = TopicPartition("orders", 0)
ORDERS_ID = UUID(int=1)
ENDPOINT = Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092)


def batch(*values: str) -> memoryview:
    return memoryview(bytearray(build_batch([Record(n, 1, None, value.encode()) for n, value in enumerate(values)])))


class HandLedBrokers:
    def __init__(self, directory: Path) -> None:
        self.clock = ManualClock(1_700_000_000_000)
        self.brokers: dict[int, SimulatedBroker] = {}
        self._directory = directory
        for broker_id in (0, 1, 2):
            self.start(broker_id)

    def start(self, broker_id: int) -> None:
        self.brokers[broker_id] = SimulatedBroker(broker_id, [self._directory / str(broker_id)], self.clock)
        self.brokers[broker_id].metadata.publish(MetadataImage(brokers={b: Broker(b, (ENDPOINT,)) for b in (0, 1, 2)}))

    def restart(self, broker_id: int) -> None:
        """As after SIGKILL."""
        self.brokers.pop(broker_id).crash()
        self.start(broker_id)

    def close(self) -> None:
        for broker in self.brokers.values():
            broker.crash()

    def tell(
        self, broker_id: int, leader: int, epoch: int, isr: tuple[int, ...] = (0, 1), version: int = 0
    ) -> ErrorCode:
        broker = self.brokers[broker_id]
        state = LeaderAndIsr(leader, epoch, isr, 1, version or epoch)
        endpoint = ENDPOINT if leader != broker_id else None
        directive = PartitionDirective(ORDERS, ORDERS_ID, state, (0, 1, 2), leader_endpoint=endpoint)
        return broker.roles.become([directive], broker.topic_config, controller_id=0, controller_epoch=1)[ORDERS]

    def elect(self, leader: int, epoch: int, isr: tuple[int, ...] = (0, 1)) -> None:
        for broker_id in self.brokers:
            assert self.tell(broker_id, leader, epoch, isr) is ErrorCode.NONE

    def append(self, broker_id: int, *values: str, acks: int = 1) -> list[Any]:
        answered: list[Any] = []
        replicas = self.brokers[broker_id].replicas
        done = replicas.append(
            [(ORDERS, batch(*values))],
            acks=acks,
            timeout_ms=1_000,
            api_version=9,
            refused=RefusedBatches(),
            done=answered.extend,
        )
        answered.extend(done or [])
        return answered

    def fetch(self, follower: int, leader: int) -> FetchOutcome:
        """One fetch, and its answer taken."""
        asking, asked = self.brokers[follower], self.brokers[leader]
        (target,) = asking.fetchers.next_fetch(leader, 100_000)
        (outcome,) = self.read(leader, target, replica=follower)
        asking.fetchers.take(target, wire_data(outcome), asked.replicas)
        return outcome

    def read(self, broker_id: int, target: FetchTarget, replica: int = -1) -> list[FetchOutcome]:
        outcomes: list[FetchOutcome] = []
        terms = FetchTerms(0, 1, 100_000, 0, replica_id=replica, listener="PLAINTEXT")
        self.brokers[broker_id].replicas.fetch([target], terms, outcomes.extend)
        return outcomes

    def end(self, broker_id: int) -> int:
        return self.log(broker_id).log_end_offset

    def log(self, broker_id: int) -> PartitionLog:
        log = self.brokers[broker_id].logs.table.get(ORDERS)
        assert log is not None
        return log

    def partition(self, broker_id: int) -> Partition:
        return self.brokers[broker_id].replicas.partitions[ORDERS]

    def watermark(self, broker_id: int) -> int:
        return self.partition(broker_id).high_watermark

    def entries(self, broker_id: int) -> list[LogEntry]:
        reading = LogReading()
        reading.read(self.log(broker_id))
        return reading.entries
