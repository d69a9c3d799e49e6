"""Effects: all actions that a decision can request, named in the imperative.

A decision is a generator that yields effects; the result of an effect is what the `yield` returns. `EffectRunner`
performs them on ZooKeeper and on the channels to the brokers, the simulator on values in memory. Every write is fenced
by the controller epoch: when it fails, `ControllerMoved` is raised outside of the decision and ends the term.
"""

from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeAlias, TypeVar

from odradek.base.value_classes import dataclass
from odradek.broker.controller.core.events import Event
from odradek.model.topology import Broker, LeaderAndIsr, PartitionReplica, TopicAssignment, TopicPartition
from odradek.protocol.schema import Request

T = TypeVar("T")


# --- read --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadBrokers:
    """→ dict[int, Broker]: the live ones."""


@dataclass(frozen=True, slots=True)
class ReadTopicNames:
    """→ set[str]: the children of /brokers/topics."""


@dataclass(frozen=True, slots=True)
class DrawTopicId:
    """→ UUID: a new random id, for a topic that an old tool created without one."""


@dataclass(frozen=True, slots=True)
class ReadTopics:
    """→ dict[str, TopicAssignment]: of these topics, or of all. A corrupt node is reported and left out."""

    topics: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class ReadPartitionStates:
    """→ dict[TopicPartition, LeaderAndIsr]: the partitions that have a state."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ReadTopicConfigs:
    """→ dict[str, dict[str, str]]: overrides of these topics, or of all."""

    topics: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class ReadTopicsToDelete:
    """→ set[str]"""


@dataclass(frozen=True, slots=True)
class ReadIsrNotifications:
    """→ tuple[list[str], set[TopicPartition]]: the nodes' names and their partitions."""


@dataclass(frozen=True, slots=True)
class ReadLogDirNotifications:
    """→ tuple[list[str], set[int]]: the nodes' names, and the brokers that lost a directory."""


@dataclass(frozen=True, slots=True)
class ReadReassignmentNode:
    """→ dict[TopicPartition, tuple[int, ...]]; empty without the node."""


@dataclass(frozen=True, slots=True)
class ReadPreferredElectionNode:
    """→ set[TopicPartition]; empty without the node."""


# --- watch: before reading, so that nothing is missed -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Watch:
    """Watch the next change of these nodes' children, and of these nodes themselves; each watch fires once."""

    children: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


# --- write -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreatePartitionStates:
    """→ dict[TopicPartition, LeaderAndIsr]: the present content of the nodes, also of existing ones."""

    states: Mapping[TopicPartition, LeaderAndIsr]


@dataclass(frozen=True, slots=True)
class UpdatePartitionStates:
    """→ dict[TopicPartition, LeaderAndIsr]: the written ones, with their new versions; a missing one lost a race."""

    states: Mapping[TopicPartition, LeaderAndIsr]


@dataclass(frozen=True, slots=True)
class WriteAssignment:
    """→ bool: False when the topic's node doesn't exist any more."""

    assignment: TopicAssignment


@dataclass(frozen=True, slots=True)
class DeleteTopicNodes:
    topic: str


@dataclass(frozen=True, slots=True)
class DropDeletionMarks:
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropIsrNotifications:
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropLogDirNotifications:
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WriteReassignmentNode:
    """Replace the remaining moves of /admin/reassign_partitions; empty removes the node."""

    remaining: Mapping[TopicPartition, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class DropPreferredElectionNode:
    pass


# --- send --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenChannel:
    broker: Broker


@dataclass(frozen=True, slots=True)
class CloseChannel:
    broker_id: int


@dataclass(frozen=True, slots=True)
class Send:
    """Queue a LeaderAndIsr, StopReplica or UpdateMetadata request for a broker."""

    broker_id: int
    request: Request


@dataclass(frozen=True, slots=True)
class Answer:
    to: Callable[[Any], None]
    value: Any


@dataclass(frozen=True, slots=True)
class Schedule:
    """Enqueue the event after a while."""

    event: Event
    delay_ms: int


@dataclass(frozen=True, slots=True)
class Moved:
    """A move of a state machine, for the log and the trace."""

    subject: TopicPartition | PartitionReplica
    moves: tuple[str, ...]
    detail: str = ""

    @property
    def subject_text(self) -> str:
        return f"{'replica' if isinstance(self.subject, PartitionReplica) else 'partition'} {self.subject}"

    def __str__(self) -> str:
        return f"{self.subject_text}  {' → '.join(self.moves)}  {self.detail}".rstrip()


@dataclass(frozen=True, slots=True)
class Report:
    """A message for the operator: an illegal move, a corrupt znode, a partition without a leader."""

    message: str
    level: str = "warning"


Effect: TypeAlias = (
    ReadBrokers
    | ReadTopicNames
    | DrawTopicId
    | ReadTopics
    | ReadPartitionStates
    | ReadTopicConfigs
    | ReadTopicsToDelete
    | ReadIsrNotifications
    | ReadLogDirNotifications
    | ReadReassignmentNode
    | ReadPreferredElectionNode
    | Watch
    | CreatePartitionStates
    | UpdatePartitionStates
    | WriteAssignment
    | DeleteTopicNodes
    | DropDeletionMarks
    | DropIsrNotifications
    | DropLogDirNotifications
    | WriteReassignmentNode
    | DropPreferredElectionNode
    | OpenChannel
    | CloseChannel
    | Send
    | Answer
    | Schedule
    | Moved
    | Report
)

Decision: TypeAlias = Generator[Effect, Any, T]
