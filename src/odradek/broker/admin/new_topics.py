"""Description of a requested topic: its partitions, replicas and configs. Pure: checks and placement, no ZooKeeper."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from random import Random
from typing import TypeAlias
from uuid import UUID

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.value_classes import dataclass
from odradek.model.placement import place_replicas
from odradek.model.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, check_topic_name, collides
from odradek.model.topology import Broker, TopicAssignment

Assignment: TypeAlias = dict[int, tuple[int, ...]]
Brokers: TypeAlias = Mapping[int, Broker]
"""The live ones."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A requested topic; counts are the broker's defaults if `counts_given` is False."""

    name: str
    partitions: int
    replication_factor: int
    counts_given: bool = False
    assignments: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    configs: Sequence[tuple[str, str | None]] = ()


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """The result of creating a topic, or of validating it only."""

    name: str
    id: UUID
    partitions: int
    replication_factor: int
    overrides: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MorePartitions:
    """Request for `count` partitions of a topic, with or without an assignment of the added ones."""

    name: str
    count: int
    assignments: Sequence[tuple[int, ...]] | None = None


def topic_made_by_asking(name: str, config: BrokerConfig) -> NewTopic:
    """Describe a topic that is created automatically: with the broker's defaults, or those of a coordinator's topic."""
    if name == TRANSACTIONS_TOPIC:
        return NewTopic(
            name,
            config.transaction_state_log_num_partitions,
            config.transaction_state_log_replication_factor,
            configs=[
                ("unclean.leader.election.enable", "false"),
                ("compression.type", "uncompressed"),
                ("cleanup.policy", "compact"),
                ("min.insync.replicas", str(config.transaction_state_log_min_isr)),
                ("segment.bytes", str(config.transaction_state_log_segment_bytes)),
            ],
        )
    if name != OFFSETS_TOPIC:
        return NewTopic(name, config.num_partitions, config.default_replication_factor)
    return NewTopic(
        name,
        config.offsets_topic_num_partitions,
        config.offsets_topic_replication_factor,
        configs=[
            ("cleanup.policy", "compact"),
            ("compression.type", "producer"),
            ("segment.bytes", str(config.offsets_topic_segment_bytes)),
        ],
    )


def check_name(name: str, existing: Collection[str]) -> None:
    check_topic_name(name)
    if name in existing:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if clash := next((other for other in existing if collides(name, other)), None):
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topics: {clash}")


def overrides_of(topic: NewTopic) -> dict[str, str]:
    """Return the requested overrides; null values are refused for a new topic."""
    overrides: dict[str, str] = {}
    for key, value in topic.configs:
        if value is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {key}")
        if key in overrides:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"The configuration names {key} twice.")
        overrides[key] = value
    return overrides


def assignment_of(topic: NewTopic, brokers: Brokers, random: Random) -> Assignment:
    """Return the assignment of its replicas: the requested one, or a placement."""
    if not topic.assignments:
        start, shift = (random.randrange(max(1, len(brokers))) for _ in range(2))
        return place_replicas(brokers, topic.partitions, topic.replication_factor, start=start, shift=shift)
    if topic.counts_given:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Both numPartitions or replicationFactor and replicasAssignments were set. Both cannot be used at the same "
            "time.",
        )
    if sorted(topic.assignments) != list(range(len(topic.assignments))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Partitions should be a consecutive 0-based integer sequence."
        )
    assignment = dict(sorted(topic.assignments.items()))
    check_replicas(assignment)  # also on unknown brokers, as in Kafka: they may be starting
    return assignment


def added_partitions(
    topic: TopicAssignment, count: int, assignments: Sequence[tuple[int, ...]] | None, brokers: Brokers
) -> Assignment:
    """Return the partitions to add for `count`: as assigned by the client, or placed as if the topic had been created
    with them."""
    if any(partition.is_reassigning for partition in topic.partitions.values()):
        raise KafkaError(
            ErrorCode.REASSIGNMENT_IN_PROGRESS,
            f"A partition reassignment is in progress for the topic '{topic.topic}'.",
        )
    held = len(topic.partitions)
    if count <= held:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic already has {held} partitions."
            if count == held
            else f"Topic currently has {held} partitions, which is higher than the requested {count}.",
        )
    first = topic.partitions[min(topic.partitions)].replicas
    if assignments is None:
        start = max(0, next((i for i, broker in enumerate(sorted(brokers)) if broker >= first[0]), 0))
        return place_replicas(brokers, count - held, len(first), start=start, shift=start, first_partition=held)
    if len(assignments) != count - held:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Increasing the number of partitions by {count - held} but {len(assignments)} assignments provided.",
        )
    assignment = {held + i: replicas for i, replicas in enumerate(assignments)}
    if unknown := {broker for replicas in assignments for broker in replicas} - brokers.keys():
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Unknown broker(s) in replica assignment: {sorted(unknown)}."
        )
    check_replicas(assignment, replication_factor=len(first))
    return assignment


def check_replicas(assignment: Assignment, replication_factor: int | None = None) -> None:
    expected = replication_factor or len(next(iter(assignment.values())))
    for partition, replicas in assignment.items():
        fault = None
        if not replicas:
            fault = "has no replicas"
        elif len(set(replicas)) != len(replicas):
            fault = f"names a broker twice: {list(replicas)}"
        elif len(replicas) != expected:
            fault = f"has {len(replicas)} replicas where others have {expected}"
        if fault:
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The assignment of partition {partition} {fault}.")
