"""Findings of an audit as values, for every form of the report."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Kinds of findings, with their texts in the report."""

    BROKEN = "broken batch"
    DIFFERENT = "replicas differ"
    MISSING = "missing on a replica"
    ABSENT = "no files of a replica"
    GAP = "offsets missing"
    OVERLAP = "offsets twice"
    SHORT = "ends below its high watermark"
    DUPLICATE = "producer sequence twice"


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A violation, and its place. `brokers` are those whose files show it."""

    topic: str
    partition: int
    offset: int
    kind: Kind
    brokers: tuple[int, ...]
    detail: str


@dataclass(frozen=True, slots=True, order=True)
class LeftOver:
    """Files of a partition on a broker without a replica of it: not a fault, they only use disk space."""

    topic: str
    partition: int
    broker: int
    bytes: int
    path: str
    reason: str


@dataclass(frozen=True, slots=True, order=True)
class NotCompared:
    """Replicas of a broker that could not be compared."""

    broker: int
    reason: str
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True, order=True)
class OpenTransaction:
    """A transaction without a marker: consumers with read_committed read up to its first offset. `held_back` is the
    number of offsets from there to the high watermark. It is hanging if it is open for longer than brokers let
    producers choose: its coordinator may not know of it, and then it never ends."""

    topic: str
    partition: int
    offset: int
    producer_id: int
    producer_epoch: int
    since_ms: int
    held_back: int
    is_hanging: bool


@dataclass(frozen=True, slots=True, order=True)
class TopicCount:
    """Records of a topic below its high watermarks, counted on the fullest replica of each partition."""

    topic: str
    partitions: int
    replicas: int
    records: int
    batches: int
    bytes: int
    uncommitted: int


@dataclass(frozen=True, slots=True)
class AuditReport:
    directories: tuple[str, ...]
    brokers: tuple[int, ...]
    topics: tuple[TopicCount, ...]
    findings: tuple[Finding, ...]
    findings_in_all: int
    """More than `findings` has when there were too many to list."""
    assignment: str
    """Source of the assignment; or what was assumed."""
    open_transactions: tuple[OpenTransaction, ...]
    left_overs: tuple[LeftOver, ...]
    not_compared: tuple[NotCompared, ...]
