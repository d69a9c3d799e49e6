"""Values that every part of the system uses: frozen and comparable, without behaviour."""

from dataclasses import field
from typing import NamedTuple
from uuid import UUID

from odradek.base.value_classes import dataclass

NO_LEADER = -1
LEADER_DURING_DELETE = -2
NO_EPOCH = -1
EPOCH_DURING_DELETE = -2
"""Leader epoch of a StopReplica for a topic that is being deleted: no epoch of the broker is newer."""

UNKNOWN_BROKER_EPOCH = -1
"""Broker epoch of a request whose sender does not know it; it is not checked."""

ZERO_UUID = UUID(int=0)


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address and security protocol of a listener."""

    listener: str
    security_protocol: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Broker:
    id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    epoch: int = -1  # czxid of its registration; a restarted broker has a higher one

    def endpoint(self, listener: str) -> Endpoint | None:
        return next((e for e in self.endpoints if e.listener == listener), None)


@dataclass(frozen=True, slots=True)
class ReplicaAssignment:
    """Replicas of a partition, with the ones that a reassignment adds and removes. During a reassignment `replicas` is
    the union of old and new.
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def target(self) -> tuple[int, ...]:
        """Replicas after the reassignment."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def original(self) -> tuple[int, ...]:
        """Replicas before the reassignment."""
        return tuple(broker for broker in self.replicas if broker not in self.adding)

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding or self.removing)


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """The content of a partition's state node."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    zk_version: int = 0
    recovering: bool = False  # its leader was elected uncleanly and has not changed the ISR since
    written_zxid: int = field(default=-1, compare=False)  # when it was read: ZooKeeper's transaction that wrote it


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """The content of a topic's node: its id and the replicas of each partition."""

    topic: str
    topic_id: UUID
    partitions: dict[int, ReplicaAssignment] = field(default_factory=dict)


class PartitionReplica(NamedTuple):
    """One broker's copy of a partition."""

    partition: TopicPartition
    broker: int

    def __str__(self) -> str:
        return f"{self.partition}@{self.broker}"


@dataclass(frozen=True, slots=True)
class ControllerTerm:
    """Term of an elected controller: its epoch, and the znode version that fences its writes."""

    epoch: int
    zk_version: int


@dataclass(frozen=True, slots=True)
class PartitionDirective:
    """Order of the controller to a broker about one partition: an entry of a LeaderAndIsr request."""

    partition: TopicPartition
    topic_id: UUID
    state: LeaderAndIsr
    replicas: tuple[int, ...]
    is_new: bool = False
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    leader_endpoint: Endpoint | None = None  # where a follower finds its leader; None: it has none, or leads itself
