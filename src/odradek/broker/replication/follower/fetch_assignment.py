"""State of a followed partition: its leader, the writers of its log, and the progress of the copy.

`FetchAssignment` is the controller's order and never changes. `Progress` belongs to the one fetch loop that copies the
partition; no other thread touches it.
"""

from collections.abc import Callable
from dataclasses import field
from typing import Protocol
from uuid import UUID

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.value_classes import dataclass
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.broker.replication.replication_quota import ReplicationQuotas
from odradek.model.topology import Endpoint, TopicPartition


@dataclass(frozen=True, slots=True)
class FetchAssignment:
    """An order to copy a partition from a leader, valid in one leader epoch."""

    endpoint: Endpoint
    leader_id: int
    leader_epoch: int
    topic_id: UUID


class Follower(Protocol):
    """The doors of a partition that a fetch loop uses.

    Each of them raises KafkaError(FENCED_LEADER_EPOCH) when the partition has gone on to another epoch, leads, or is
    hosted no longer: that is what makes an answer that comes late harmless.
    """

    @property
    def log(self) -> PartitionLog: ...

    @property
    def high_watermark(self) -> int: ...

    def append_fetched(
        self, records: memoryview, *, leader_epoch: int, high_watermark: int, log_start_offset: int
    ) -> object: ...

    def truncate_to(self, offset: int, *, leader_epoch: int) -> object: ...

    def start_over_at(self, offset: int, *, leader_epoch: int) -> object: ...


FindFollower = Callable[[TopicPartition], Follower | None]


@dataclass(frozen=True, slots=True)
class FetchContext:
    """Services that the replica fetcher threads of a broker share."""

    broker_id: int
    config: BrokerConfig
    find: FindFollower
    clock: Clock
    on_advance: Callable[[TopicPartition], None]
    broker_epoch: Callable[[], int]
    quotas: ReplicationQuotas


@dataclass(slots=True)
class Progress:
    following: FetchAssignment
    must_truncate: bool  # by asking for the end of the last epoch first, where a fetch doesn't tell of divergence
    lag: int | None = None  # to the leader's high watermark; None: not known yet
    backoff_ms: int = field(default=0)  # of the last failure; 0 after a success

    @property
    def is_in_sync(self) -> bool:
        return self.lag == 0
