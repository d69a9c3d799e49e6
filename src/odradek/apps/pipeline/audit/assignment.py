"""Scope of an audit: the cluster's assignment against the files in brokers' directories.

A broker that was away while its replica was moved elsewhere, or while its topic was deleted, keeps the files. They are
reported as left-overs and not compared: no leader replicates to them, and they may have records that were never
committed. Without an assignment every directory of a partition counts as a replica.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from odradek.apps.pipeline.audit.findings import Finding, Kind, LeftOver, NotCompared
from odradek.apps.pipeline.segment_source.log_directories import (
    LogDirectory,
    ReplicaDirectory,
    existing_replicas,
    log_directories,
    stray_replicas,
)
from odradek.apps.pipeline.source.errors import OptionError
from odradek.model.topology import ZERO_UUID, TopicPartition

UNKNOWN_ASSIGNMENT = "not known: every broker with files of a partition is taken for a replica of it"


@dataclass(frozen=True, slots=True)
class Assignment:
    """The brokers that have a replica of each partition, according to the cluster."""

    source: str
    """Source of the assignment, for the report."""
    cluster_id: str
    replicas: Mapping[TopicPartition, frozenset[int]]
    isr: Mapping[TopicPartition, frozenset[int]]
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AuditScope:
    """Replicas that are compared, and the ones that are not, with the reason."""

    directories: tuple[LogDirectory, ...]
    topics: frozenset[str]
    """Selected topics; none: all."""
    replicas: tuple[ReplicaDirectory, ...]
    assignment: str = UNKNOWN_ASSIGNMENT
    left_overs: tuple[LeftOver, ...] = ()
    absent: tuple[Finding, ...] = ()
    """In-sync replicas without files."""
    not_compared: tuple[NotCompared, ...] = ()

    @property
    def paths(self) -> list[str]:
        return [str(directory.path) for directory in self.directories]

    @property
    def brokers(self) -> tuple[int, ...]:
        return tuple(sorted({directory.broker for directory in self.directories}))


@dataclass(frozen=True, slots=True)
class AuditedFiles:
    """The replicas' directories, listed once. The assignment has to be read later: a topic that is created in between
    has no files here, and directories are listed again for a replica that was moved."""

    directories: tuple[LogDirectory, ...]
    replicas: tuple[ReplicaDirectory, ...]
    strays: tuple[ReplicaDirectory, ...]
    topics: frozenset[str]

    @classmethod
    def below(cls, paths: Sequence[str], topics: frozenset[str] = frozenset()) -> "AuditedFiles":
        """List the directories. OptionError if there is nothing to audit."""
        directories = log_directories(paths)
        strays = stray_replicas(directories, topics)
        return cls(tuple(directories), tuple(existing_replicas(paths, topics)), tuple(strays), topics)

    def scope(self, assignment: Assignment | None) -> AuditScope:
        """Choose the replicas to compare. OptionError if the assignment is that of another cluster."""
        strays = [_left_over(stray, "set aside by its broker as stray") for stray in self.strays]
        if assignment is None:
            unknown = _without_high_watermark(self.replicas)
            return AuditScope(
                self.directories, self.topics, self.replicas, left_overs=tuple(strays), not_compared=tuple(unknown)
            )
        self._refuse_another_cluster(assignment)
        reasons = [_left_over_reason(replica, assignment) for replica in self.replicas]
        judged = list(zip(self.replicas, reasons, strict=True))
        held = tuple(replica for replica, reason in judged if reason is None)
        left = [_left_over(replica, why) for replica, why in judged if why is not None and replica.path.is_dir()]
        absent, elsewhere = self._without_files(held, assignment)
        return AuditScope(
            self.directories,
            self.topics,
            held,
            assignment.source,
            tuple(sorted([*left, *strays])),
            tuple(absent),
            (*_without_high_watermark(held), *elsewhere),
        )

    def _refuse_another_cluster(self, assignment: Assignment) -> None:
        for directory in self.directories:
            if directory.cluster_id not in (None, assignment.cluster_id):
                raise OptionError(
                    f"{directory.path} is of cluster {directory.cluster_id}, the assignment of cluster "
                    f"{assignment.cluster_id} ({assignment.source})"
                )

    def _without_files(
        self, held: Iterable[ReplicaDirectory], assignment: Assignment
    ) -> tuple[list[Finding], list[NotCompared]]:
        """The replicas that the cluster has, and that the directories don't."""
        held = list(held)
        there = {(replica.partition, replica.broker) for replica in held}
        written = {replica.partition for replica in held if replica.high_watermark}
        given = {directory.broker for directory in self.directories}
        absent: list[Finding] = []
        others: dict[tuple[int, str], list[TopicPartition]] = {}
        assigned = ((tp, broker) for tp, brokers in sorted(assignment.replicas.items()) for broker in sorted(brokers))
        for tp, broker in assigned:
            if (self.topics and tp.topic not in self.topics) or (tp, broker) in there or self._has(tp, broker):
                continue
            if broker not in given:
                others.setdefault((broker, "its directories were not given"), []).append(tp)
            elif tp in written and broker in assignment.isr.get(tp, ()):
                absent.append(Finding(*tp, 0, Kind.ABSENT, (broker,), "the broker is in the ISR"))
            else:
                others.setdefault((broker, "it has no files of them"), []).append(tp)
        return absent, [_named(broker, reason, tps) for (broker, reason), tps in others.items()]

    def _has(self, tp: TopicPartition, broker: int) -> bool:
        """Return whether files have come since the directories were listed."""
        return any((known.path / str(tp)).is_dir() for known in self.directories if known.broker == broker)


def _left_over_reason(replica: ReplicaDirectory, assignment: Assignment) -> str | None:
    brokers = assignment.replicas.get(replica.partition)
    if brokers is None:
        return "there is no such partition"
    if replica.broker not in brokers:
        return f"the replicas are on brokers {', '.join(map(str, sorted(brokers)))}"
    known = assignment.topic_ids.get(replica.partition.topic, ZERO_UUID)
    if ZERO_UUID not in (known, replica.topic_id) and replica.topic_id != known:
        return "of an earlier topic of that name"
    return None


def _left_over(replica: ReplicaDirectory, reason: str) -> LeftOver:
    return LeftOver(*replica.partition, replica.broker, replica.size_bytes(), str(replica.path), reason)


def _without_high_watermark(replicas: Iterable[ReplicaDirectory]) -> list[NotCompared]:
    """A replica is compared below its own high watermark: without one, nothing of it is known to be committed."""
    by_broker: dict[int, list[TopicPartition]] = {}
    for replica in replicas:
        if replica.high_watermark is None and replica.size_bytes():
            by_broker.setdefault(replica.broker, []).append(replica.partition)
    return [_named(broker, "no high watermark is checkpointed", tps) for broker, tps in sorted(by_broker.items())]


def _named(broker: int, reason: str, tps: Iterable[TopicPartition]) -> NotCompared:
    return NotCompared(broker, reason, tuple(map(str, sorted(tps))))
