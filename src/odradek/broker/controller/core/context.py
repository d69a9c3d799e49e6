"""State of the cluster in the controller: read from ZooKeeper, then changed by the controller's own decisions.

Owned by the event thread: only decisions read and change it. It is read once at the beginning of the term, and up to
date from then on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import Enum
from uuid import UUID

from odradek.base.value_classes import dataclass
from odradek.model.topology import (
    Broker,
    ControllerTerm,
    LeaderAndIsr,
    PartitionReplica,
    ReplicaAssignment,
    TopicAssignment,
    TopicPartition,
)


class PartitionState(Enum):
    NON_EXISTENT = "never created, or deleted"
    NEW = "has replicas, no leader yet"
    ONLINE = "has a leader in the ISR"
    OFFLINE = "its leader died and no one could take over"


class ReplicaState(Enum):
    NON_EXISTENT = "never created, or deleted"
    NEW = "assigned; the first LeaderAndIsr is sent"
    ONLINE = "leads or follows"
    OFFLINE = "its broker or its directory is gone"
    DELETION_STARTED = "StopReplica with deletion is sent"
    DELETION_SUCCESSFUL = "has deleted its log"
    DELETION_INELIGIBLE = "can't delete its log now; tried again when its broker is back"


@dataclass(slots=True)
class ControllerContext:
    broker_id: int
    """The broker that this controller runs on."""
    inter_broker_listener: str
    auto_leader_rebalance: bool = True
    imbalance_percentage_max: int = 10
    imbalance_check_interval_ms: int = 300_000
    unclean_election_default: bool = False
    delete_topic_enabled: bool = True

    term: ControllerTerm = field(default_factory=lambda: ControllerTerm(0, 0))
    brokers: dict[int, Broker] = field(default_factory=dict)
    """The live ones, as registered."""
    shutting_down: set[int] = field(default_factory=set)
    """Live brokers in a controlled shutdown: they are elected no more."""

    topic_ids: dict[str, UUID] = field(default_factory=dict)
    topics: dict[str, dict[int, ReplicaAssignment]] = field(default_factory=dict)
    topic_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    states: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    """States in the state nodes; a partition that never had a leader has none."""
    partition_states: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    replica_states: dict[PartitionReplica, ReplicaState] = field(default_factory=dict)

    offline_replicas: dict[int, set[TopicPartition]] = field(default_factory=dict)
    """Per live broker, the replicas whose directory failed."""
    to_delete: set[str] = field(default_factory=set)
    ineligible_for_deletion: set[str] = field(default_factory=set)
    deletion_begun: set[str] = field(default_factory=set)
    """Topics whose replicas are being deleted: metadata shows them without a leader."""
    reassigning: set[TopicPartition] = field(default_factory=set)
    reassignments_from_node: set[TopicPartition] = field(default_factory=set)
    """Moves from /admin/reassign_partitions, which is updated as they end."""

    # --- topics and their replicas -------------------------------------------------------------------------------

    def assignment(self, tp: TopicPartition) -> ReplicaAssignment:
        """Return the assignment; empty for an unknown partition."""
        return self.topics.get(tp.topic, {}).get(tp.partition, ReplicaAssignment(()))

    def set_assignment(self, tp: TopicPartition, assignment: ReplicaAssignment) -> None:
        self.topics.setdefault(tp.topic, {})[tp.partition] = assignment

    def topic_assignment(self, topic: str) -> TopicAssignment:
        """The topic's node as it should be."""
        return TopicAssignment(topic, self.topic_ids[topic], dict(sorted(self.topics[topic].items())))

    def add_topic(self, topic: TopicAssignment) -> None:
        self.topic_ids[topic.topic] = topic.topic_id
        self.topics[topic.topic] = dict(topic.partitions)

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, number) for number in self.topics.get(topic, ())]

    def all_partitions(self) -> list[TopicPartition]:
        return [TopicPartition(topic, number) for topic, partitions in self.topics.items() for number in partitions]

    def replicas_of(self, tps: Iterable[TopicPartition]) -> list[PartitionReplica]:
        return [PartitionReplica(tp, broker) for tp in tps for broker in self.assignment(tp).replicas]

    def replicas_on(self, brokers: Iterable[int]) -> list[PartitionReplica]:
        wanted = frozenset(brokers)
        return [replica for replica in self.replicas_of(self.all_partitions()) if replica.broker in wanted]

    def forget_topic(self, topic: str) -> None:
        for tp in self.partitions_of(topic):
            self.states.pop(tp, None)
            self.partition_states.pop(tp, None)
            self.reassigning.discard(tp)
            for broker in self.assignment(tp).replicas:
                self.replica_states.pop(PartitionReplica(tp, broker), None)
        self.topics.pop(topic, None)
        self.topic_ids.pop(topic, None)
        self.topic_configs.pop(topic, None)
        for held in (self.to_delete, self.ineligible_for_deletion, self.deletion_begun):
            held.discard(topic)

    # --- live brokers -----------------------------------------------------------------------------------------------

    def live_brokers(self) -> set[int]:
        """Brokers that may lead: registered and not shutting down."""
        return self.brokers.keys() - self.shutting_down

    def is_online(self, replica: PartitionReplica, *, include_shutting_down: bool = False) -> bool:
        """Its broker lives and its directory works."""
        tp, broker = replica
        if broker not in self.brokers or (broker in self.shutting_down and not include_shutting_down):
            return False
        return broker not in self.offline_replicas or tp not in self.offline_replicas[broker]

    def online_replicas(self, tp: TopicPartition) -> tuple[int, ...]:
        return tuple(b for b in self.assignment(tp).replicas if self.is_online(PartitionReplica(tp, b)))

    # --- the machines' states ------------------------------------------------------------------------------------

    def partition_state(self, tp: TopicPartition) -> PartitionState:
        return self.partition_states.get(tp, PartitionState.NON_EXISTENT)

    def replica_state(self, replica: PartitionReplica) -> ReplicaState:
        return self.replica_states.get(replica, ReplicaState.NON_EXISTENT)

    def is_being_deleted(self, topic: str) -> bool:
        return topic in self.to_delete

    def unclean_election_enabled(self, topic: str) -> bool:
        text = self.topic_configs.get(topic, {}).get("unclean.leader.election.enable")
        return self.unclean_election_default if text is None else text.lower() == "true"


def by_topic(tps: Iterable[TopicPartition]) -> Mapping[str, list[TopicPartition]]:
    found: dict[str, list[TopicPartition]] = {}
    for tp in tps:
        found.setdefault(tp.topic, []).append(tp)
    return found
