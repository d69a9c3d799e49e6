"""Events of the controller, in the past tense.

Watches, timers, answers of brokers and requests of clients only enqueue one of these; the event thread processes them
one after the other with the function that `decisions` gives for each. An event with a waiting request carries `answer`,
which is called exactly once, by the effect `Answer`.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, TypeAlias

from odradek.base.errors import ErrorCode
from odradek.base.value_classes import dataclass
from odradek.model.topology import LeaderAndIsr, TopicPartition

Callback: TypeAlias = Callable[[Any], None]


# --- changed znodes, which the decision reads --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ControllerElected:
    """Election of this broker: it reads the cluster and takes over. The term is in the context already."""


@dataclass(frozen=True, slots=True)
class BrokersChanged:
    """A child of /brokers/ids came or went."""


@dataclass(frozen=True, slots=True)
class BrokerInfoChanged:
    """A live broker has changed its registration: other endpoints, other features."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """A child of /brokers/topics came or went."""


@dataclass(frozen=True, slots=True)
class TopicAssignmentChanged:
    """A topic's node was written: it has more partitions."""

    topic: str


@dataclass(frozen=True, slots=True)
class TopicDeletionAsked:
    """/admin/delete_topics has children."""


@dataclass(frozen=True, slots=True)
class IsrChangesNotified:
    """/isr_change_notification has children: leaders changed their ISR by themselves."""


@dataclass(frozen=True, slots=True)
class LogDirsFailed:
    """/log_dir_event_notification has children: brokers lost a directory."""


@dataclass(frozen=True, slots=True)
class ReassignmentNodeWritten:
    """/admin/reassign_partitions, which older tools write."""


@dataclass(frozen=True, slots=True)
class PreferredElectionNodeWritten:
    """/admin/preferred_replica_election, which older tools write."""


# --- time --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RebalanceDue:
    """The check of preferred leaders is due."""


# --- answers of brokers ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LeaderAndIsrAnswered:
    broker_id: int
    errors: Mapping[TopicPartition, ErrorCode]


@dataclass(frozen=True, slots=True)
class StopReplicaAnswered:
    """Answer to a request that asked to delete replicas."""

    broker_id: int
    errors: Mapping[TopicPartition, ErrorCode]


# --- requests ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ControlledShutdownAsked:
    """A broker wants to leave. Answer: the partitions that it still leads, as a set, or a KafkaError."""

    broker_id: int
    broker_epoch: int
    answer: Callback


@dataclass(frozen=True, slots=True)
class IsrChangeAsked:
    """AlterPartition. Answer: per partition its new LeaderAndIsr or a KafkaError; or one KafkaError for all."""

    broker_id: int
    broker_epoch: int
    wanted: Mapping[TopicPartition, LeaderAndIsr]
    answer: Callback
    isr_epochs: Mapping[TopicPartition, Mapping[int, int]] = field(default_factory=dict)
    """The broker epochs that the leader saw in the ISR's fetches (v3); the epoch of a broker that isn't named is not
    checked."""


@dataclass(frozen=True, slots=True)
class ElectionAsked:
    """ElectLeaders. `partitions` None: all. Answer: dict of partition → KafkaError or None."""

    partitions: frozenset[TopicPartition] | None
    election_type: int
    answer: Callback


@dataclass(frozen=True, slots=True)
class ReassignmentsAsked:
    """AlterPartitionReassignments. None cancels. Answer: dict of partition → KafkaError or None, or one KafkaError."""

    wanted: Mapping[TopicPartition, tuple[int, ...] | None]
    answer: Callback


@dataclass(frozen=True, slots=True)
class ReassignmentsListed:
    """ListPartitionReassignments. `partitions` None: all. Answer: dict of partition → ReplicaAssignment."""

    partitions: frozenset[TopicPartition] | None
    answer: Callback


@dataclass(frozen=True, slots=True)
class TopicConfigsChanged:
    """Overrides of a topic changed; an unclean election may have become possible."""

    topics: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class UncleanElectionDefaultChanged:
    """The default of unclean.leader.election.enable changed, for topics without an override."""

    enabled: bool


Event: TypeAlias = (
    ControllerElected
    | BrokersChanged
    | BrokerInfoChanged
    | TopicsChanged
    | TopicAssignmentChanged
    | TopicDeletionAsked
    | IsrChangesNotified
    | LogDirsFailed
    | ReassignmentNodeWritten
    | PreferredElectionNodeWritten
    | RebalanceDue
    | LeaderAndIsrAnswered
    | StopReplicaAnswered
    | ControlledShutdownAsked
    | IsrChangeAsked
    | ElectionAsked
    | ReassignmentsAsked
    | ReassignmentsListed
    | TopicConfigsChanged
    | UncleanElectionDefaultChanged
)
