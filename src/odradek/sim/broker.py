"""One broker of the simulation: real logs, replicas, gate and handlers; its threads and sockets are the simulator's.

What a fetch loop does between two fetches is done here in its order: ask from the log's end, take the answer if the
log is still the one that was asked for, reset when the leader doesn't have that end.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from odradek.base.clock import ManualClock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.topic_config import TopicConfig
from odradek.base.errors import ErrorCode
from odradek.broker.api.control_gate import ControlGate
from odradek.broker.api.handlers.leader_and_isr import leader_and_isr
from odradek.broker.api.handlers.stop_replica import stop_replica
from odradek.broker.api.handlers.update_metadata import update_metadata
from odradek.broker.log.directories.log_dirs import LogDirs
from odradek.broker.log.files.background import IMMEDIATE
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.broker.purgatory.reaper import ExpirationReaper
from odradek.broker.replication.core.isr import IsrChange
from odradek.broker.replication.follower import fetch_answers
from odradek.broker.replication.follower.fetch_answers import Outcome
from odradek.broker.replication.follower.fetch_assignment import FetchAssignment, Progress
from odradek.broker.replication.leader.fetch_reader import FetchOutcome, FetchTarget
from odradek.broker.replication.partition import Partition
from odradek.broker.replication.replica_manager import ReplicaManager
from odradek.model.metadata_image import MetadataCache
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.fetch import EpochEndOffset, PartitionData
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from odradek.protocol.messages.list_offsets import (
    LATEST,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from odradek.protocol.messages.stop_replica import StopReplicaRequest
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest
from odradek.protocol.schema import Request, Response

ORDERS = TopicPartition("orders", 0)
ORDERS_ID = UUID(int=1)
MAX_LAG_MS = 10_000

_HANDLERS: dict[type, tuple[Callable[..., object], int]] = {
    LeaderAndIsrRequest: (leader_and_isr, 7),
    StopReplicaRequest: (stop_replica, 4),
    UpdateMetadataRequest: (update_metadata, 8),
}


class InlineGate(ControlGate):
    """Admits as the real one does, on the caller's thread."""

    def submit(self, request: Any, correlation_id: int, answer: Callable[[ErrorCode], None]) -> None:
        answer(self._admit(request, correlation_id))


class SimulatedBroker:
    """One life of a broker, from its start to its crash."""

    def __init__(self, broker_id: int, directory: Path, clock: ManualClock) -> None:
        self.id = broker_id
        self.config = BrokerConfig.from_properties(
            {
                "broker.id": str(broker_id),
                "zookeeper.connect": "unused:1",
                "log.dirs": str(directory),
                "replica.lag.time.max.ms": str(MAX_LAG_MS),
            }
        )
        self.topic_config = TopicConfig.of(self.config, {"min.insync.replicas": "2", "segment.bytes": "600"})
        self.logs = LogDirs([directory], self.config, IMMEDIATE, clock, _must_not_fail)
        self.logs.lock()
        self.logs.load()
        self.reaper = ExpirationReaper(clock)
        self.metadata = MetadataCache()
        self.replicas = ReplicaManager(broker_id, self.config, self.logs, self.metadata, self.reaper, clock)
        self.replicas.fetchers = self
        self.replicas.on_isr_change = self._want_isr
        self.gate = InlineGate()
        self.progress: Progress | None = None
        self.asked: FetchTarget | None = None  # the fetch that is under way
        self.wanted_isr: IsrChange | None = None

    @property
    def partition(self) -> Partition | None:
        return self.replicas.partitions.get(ORDERS)

    @property
    def log(self) -> PartitionLog | None:
        return self.logs.get(ORDERS)

    @property
    def leads(self) -> bool:
        return self.partition is not None and self.partition.is_leader

    # ---- what ReplicaManager tells of followed partitions, and of changes of the ISR

    def follow(self, orders: Mapping[TopicPartition, FetchAssignment]) -> None:
        for order in orders.values():
            if self.progress is None or self.progress.following != order:
                self.progress, self.asked = Progress(order, must_truncate=False), None

    def unfollow(self, tps: Iterable[TopicPartition]) -> None:
        self.progress = self.asked = None

    def _want_isr(self, change: IsrChange) -> None:
        self.wanted_isr = change

    # ---- the controller's requests

    def obey(self, request: Request, correlation_id: int = 0) -> Response:
        handler, version = _HANDLERS[type(request)]
        answered: list[Response] = []

        def reply_with(build: Callable[[ErrorCode], Response]) -> Callable[[ErrorCode], None]:
            return lambda code: answered.append(build(code))

        configs = SimpleNamespace(look_up=lambda topics: None, effective=lambda topic: self.topic_config)
        groups = SimpleNamespace(forget_topic=lambda topic: None)
        broker = SimpleNamespace(
            id=self.id,
            config=self.config,
            control=self.gate,
            replicas=self.replicas,
            metadata=self.metadata,
            configs=configs,
            groups=groups,
        )
        header = SimpleNamespace(correlation_id=correlation_id)
        handler(request, SimpleNamespace(version=version, header=header, broker=broker, reply_with=reply_with))
        return answered[0]

    # ---- following

    def next_fetch(self, max_bytes: int) -> FetchTarget | None:
        """Return the next fetch for the leader; None if nothing is followed, or the last answer is still awaited."""
        if self.progress is None or self.asked is not None or self.partition is None:
            return None
        own, order = self.partition.log, self.progress.following
        self.asked = FetchTarget(
            ORDERS,
            ORDERS_ID,
            own.log_end_offset,
            max_bytes,
            order.leader_epoch,
            own.epochs.latest_epoch,
            log_start_offset=own.log_start_offset,
        )
        return self.asked

    def take(self, target: FetchTarget, data: PartitionData, leader: "SimulatedBroker | None") -> None:
        if target is not self.asked or self.progress is None or self.partition is None:
            return
        self.asked = None
        if target.fetch_offset != self.partition.log.log_end_offset:
            return
        outcome = fetch_answers.take(self.partition, ORDERS, self.progress, data)
        if outcome is Outcome.OVER:
            self.progress = None
        elif outcome is Outcome.OUT_OF_RANGE and leader is not None and leader.leads:
            peer: Any = SimpleNamespace(send=leader.list_offsets)
            fetch_answers.reset_after_out_of_range(peer, self.id, self.partition, ORDERS, self.progress.following)

    def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        wanted = request.topics[0].partitions[0]
        assert self.partition is not None
        own = self.partition.leader_log()
        offset = own.log_end_offset if wanted.timestamp == LATEST else own.log_start_offset
        found = ListOffsetsPartitionResponse(partition_index=0, offset=offset)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=ORDERS.topic, partitions=[found])])

    # ---- the end

    def stop(self) -> None:
        """As after SIGTERM: everything is on disk."""
        self.logs.checkpoint_high_watermarks(self.replicas.high_watermarks())
        self.logs.close()
        self.logs.unlock()

    def crash(self) -> None:
        """Crash as after SIGKILL: written bytes stay, nothing else is done."""
        if self.log is not None:
            self.log.close(clean=False)
        self.logs.unlock()

    def crash_and_lose_tail(self, chance: Random) -> None:
        """As after a power failure: what fsync has not confirmed may be gone, cut anywhere."""
        own = self.log
        assert own is not None
        active = own.segments[-1]
        safe = active.end_position(own.recovery_point) if own.recovery_point > active.base_offset else 0
        size = chance.randint(safe, active.size)
        self.crash()
        os.truncate(active.path, size)


def wire_data(outcome: FetchOutcome) -> PartitionData:
    """The outcome of a follower's fetch as it goes over the wire."""
    data = PartitionData(partition_index=0, error_code=outcome.error)
    if outcome.diverging is not None:
        data.diverging_epoch = EpochEndOffset(epoch=outcome.diverging.epoch, end_offset=outcome.diverging.end_offset)
    if outcome.found is not None:
        data.high_watermark = outcome.found.high_watermark
        data.log_start_offset = outcome.found.log_start_offset
        records = outcome.found.records
        data.records = memoryview(b"" if records is None else records.read())
    return data


def _must_not_fail(reason: str) -> None:
    raise AssertionError(f"log directories failed: {reason}")
