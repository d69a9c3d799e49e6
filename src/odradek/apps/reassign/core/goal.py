"""Goals of a reassignment."""

from dataclasses import dataclass
from enum import StrEnum


class Balance(StrEnum):
    REPLICAS = "replicas"  # each broker holds as many as the others
    DISKS = "disks"  # each broker holds as many bytes as the others
    LEADERS = "leaders"  # each broker is the preferred leader of as many; no data is moved for it
    RACKS = "racks"  # no two replicas of a partition in one rack while another has none


@dataclass(frozen=True, slots=True)
class Goal:
    """All parts hold together; of the assignments that reach them, one that moves little is chosen."""

    brokers: frozenset[int] | None = None
    """Brokers that may have replicas. None: brokers that have some now, and all live brokers."""
    drain: frozenset[int] = frozenset()
    """Brokers that must have no replicas."""
    replication_factor: int | None = None
    balance: frozenset[Balance] = frozenset()
    topics: frozenset[str] | None = None
    """Topics to change. None: all."""
