"""The cluster as a planner sees it. Values only; `reading` gets them from a cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from odradek.model.topology import TopicPartition


@dataclass(frozen=True, slots=True)
class BrokerView:
    """A live broker."""

    id: int
    rack: str | None = None
    total_bytes: int | None = None
    """Size of its volumes; None if the broker doesn't report it."""
    usable_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionView:
    replicas: tuple[int, ...]
    leader: int
    isr: tuple[int, ...]
    size_bytes: int = 0
    """Size of its largest replica."""
    is_moving: bool = False
    """A reassignment is under way."""


@dataclass(frozen=True, slots=True)
class ClusterView:
    brokers: Mapping[int, BrokerView]
    partitions: Mapping[TopicPartition, PartitionView]
    min_isr: Mapping[str, int] = field(default_factory=dict)
    """min.insync.replicas of each topic; a topic that is missing has 1."""

    @property
    def racks(self) -> dict[int, str]:
        """Racks of the live brokers; empty unless all of them have one."""
        racks = {broker.id: broker.rack for broker in self.brokers.values() if broker.rack is not None}
        return racks if len(racks) == len(self.brokers) else {}
