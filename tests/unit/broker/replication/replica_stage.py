"""One broker's replicas over real logs; time and controller are moved by hand, other brokers only talked about."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from no_verification import NO_VERIFIER
from odradek.base.clock import ManualClock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.topic_config import TopicConfig
from odradek.base.errors import ErrorCode
from odradek.base.scheduler import Scheduler
from odradek.broker.log.core.check_budget import UNBOUNDED
from odradek.broker.log.directories.log_dirs import LogDirs
from odradek.broker.purgatory.reaper import ExpirationReaper
from odradek.broker.replication.core.isr import IsrChange
from odradek.broker.replication.core.outcomes import Appended
from odradek.broker.replication.core.refused_batches import RefusedBatches
from odradek.broker.replication.follower.fetch_assignment import FetchAssignment
from odradek.broker.replication.leader.delayed_produce import AppendOutcome
from odradek.broker.replication.leader.fetch_reader import FetchOutcome, FetchTarget, FetchTerms
from odradek.broker.replication.leader.transactional_appends import TransactionVerifier
from odradek.broker.replication.partition import Partition
from odradek.broker.replication.partition_table import PartitionTable
from odradek.broker.replication.replica_manager import ReplicaManager
from odradek.model.metadata_image import MetadataCache, MetadataImage
from odradek.model.topology import Broker, Endpoint, LeaderAndIsr, PartitionDirective, TopicPartition
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import Record

ORDERS = TopicPartition("orders", 0)
ORDERS_ID = UUID(int=7)
MAX_LAG_MS = 30_000
LISTENER = "PLAINTEXT"


def batch(*values: str) -> memoryview:
    records = [Record(i, 1_700_000_000_000, None, value.encode()) for i, value in enumerate(values)]
    return memoryview(bytearray(build_batch(records)))


class Copies:
    """Stands for the follower side: remembers what is followed."""

    def __init__(self) -> None:
        self.following: dict[TopicPartition, FetchAssignment] = {}

    def follow(self, orders: Any) -> None:
        self.following |= orders

    def unfollow(self, tps: Any) -> None:
        for tp in tps:
            self.following.pop(tp, None)


class RecordingListener:
    """Stands for the coordinators."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []

    def lead(self, tp: TopicPartition, leader_epoch: int) -> None:
        self.told.append(("lead", leader_epoch))

    def resign(self, tp: TopicPartition, leader_epoch: int) -> None:
        self.told.append(("resign", leader_epoch))

    def forget(self, tp: TopicPartition) -> None:
        self.told.append(("forget", tp.partition))


class ReplicaStage:
    def __init__(
        self, *directories: Path, broker_id: int = 0, verifier: TransactionVerifier = NO_VERIFIER, **topic: str
    ) -> None:
        self.clock = ManualClock(1_700_000_000_000)
        self.config = BrokerConfig.from_properties(
            {
                "broker.id": str(broker_id),
                "zookeeper.connect": "unused:1",
                "log.dirs": ",".join(map(str, directories)),
                "replica.lag.time.max.ms": str(MAX_LAG_MS),
                "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
            }
        )
        self.broker_id = broker_id
        self.topic_config = TopicConfig.of(self.config, {key.replace("_", "."): value for key, value in topic.items()})
        self.logs = LogDirs(directories, self.config, Scheduler(self.clock), self.clock, pytest.fail)
        self.logs.lock()
        self.logs.load()
        self.reaper = ExpirationReaper(self.clock)
        self.metadata = MetadataCache()
        self.live(0, 1, 2)
        self.proposed: list[IsrChange] = []
        self.replicas = PartitionTable(
            broker_id, self.config, self.metadata, self.reaper, self.clock, self.proposed.append, verifier
        )
        self.copies = Copies()
        self.listener = RecordingListener()
        self.on_host: Callable[[Partition], None] = lambda partition: None
        self.roles = ReplicaManager(
            broker_id,
            self.config,
            self.replicas,
            self.logs,
            self.metadata,
            self.reaper,
            self.clock,
            fetchers=self.copies,
            listeners=(self.listener,),
            on_host=lambda partition: self.on_host(partition),
        )
        self.zk_version = 0
        self.controller_epoch = 1

    def close(self) -> None:
        self.logs.close()
        self.logs.unlock()

    def live(self, *broker_ids: int) -> None:
        brokers = {
            i: Broker(i, (Endpoint(LISTENER, "PLAINTEXT", "127.0.0.1", 9092 + i),), rack=f"rack-{i}")
            for i in broker_ids
        }
        self.metadata.image = MetadataImage(brokers=brokers)

    # ---- the controller

    def directive(
        self, leader: int, epoch: int, isr: tuple[int, ...], replicas: tuple[int, ...] = (0, 1, 2)
    ) -> PartitionDirective:
        self.zk_version += 1
        state = LeaderAndIsr(leader, epoch, isr, self.controller_epoch, self.zk_version)
        return PartitionDirective(ORDERS, ORDERS_ID, state, replicas, is_new=True)

    def become(
        self, leader: int, epoch: int, isr: tuple[int, ...] = (0, 1, 2), replicas: tuple[int, ...] = (0, 1, 2)
    ) -> ErrorCode:
        return self.obey(self.directive(leader, epoch, isr, replicas))

    def obey(self, directive: PartitionDirective) -> ErrorCode:
        return self.roles.become(
            [directive], lambda _: self.topic_config, controller_id=0, controller_epoch=self.controller_epoch
        )[ORDERS]

    def confirm(self, change: IsrChange) -> None:
        """The controller makes the change."""
        self.zk_version += 1
        state = LeaderAndIsr(
            change.leader, change.leader_epoch, change.isr, change.controller_epoch, change.partition_epoch + 1
        )
        self.replicas.isr_answered(change, state)

    # ---- clients and followers

    @property
    def partition(self) -> Partition:
        return self.replicas.find(ORDERS)

    def produce(self, *values: str, acks: int = -1, timeout_ms: int = 5_000) -> list[AppendOutcome]:
        """The list stays empty until it is answered."""
        answered: list[AppendOutcome] = []
        at_once = self.replicas.append(
            [(ORDERS, batch(*values))],
            acks=acks,
            timeout_ms=timeout_ms,
            api_version=9,
            refused=RefusedBatches(),
            done=answered.extend,
        )
        answered.extend(at_once or [])
        return answered

    def append(self, value: str) -> Appended:
        """To the partition alone: nobody waits."""
        records = batch(value)
        checked = self.partition.check(records, acks=-1, api_version=9, budget=UNBOUNDED)
        return self.partition.append(checked, len(records), acks=-1)

    def fetch(
        self, offset: int, *, replica: int = -1, epoch: int = -1, last_epoch: int = -1, wait_ms: int = 0, **terms: Any
    ) -> list[FetchOutcome]:
        """By a follower if `replica` says so. The list stays empty until it is answered."""
        answered: list[FetchOutcome] = []
        target = FetchTarget(ORDERS, ORDERS_ID, offset, 1_000_000, epoch, last_epoch, log_start_offset=0)
        wanted = FetchTerms(wait_ms, 1, 1_000_000, 0, replica_id=replica, listener=LISTENER, **terms)
        self.replicas.fetch([target], wanted, answered.extend)
        return answered

    def passes(self, ms: int) -> None:
        self.clock.advance(ms)
        self.reaper.expire_due()
