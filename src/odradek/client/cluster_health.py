"""Health of a cluster: its metadata, its settings and its disks as one value."""

from collections.abc import Mapping

from odradek.base.errors import KafkaError
from odradek.base.value_classes import dataclass
from odradek.client.broker_client import ConnectionFailed
from odradek.client.cluster_admin import describe_cluster
from odradek.client.cluster_client import ClusterClient, PartitionState
from odradek.client.log_dir_admin import LogDir, describe_log_dirs
from odradek.client.topic_admin import min_isr
from odradek.model.topology import TopicPartition


@dataclass(frozen=True, slots=True)
class BrokerHealth:
    id: int
    address: str
    rack: str | None
    leads: int
    preferred: int  # partitions that it should lead
    not_led: int  # of these, partitions with another leader or none
    replicas: int
    out_of_sync: int
    directories: tuple[LogDir, ...] | None  # None: it didn't answer
    certificate_ends_s: float | None = None  # Unix time; None: no TLS, or it didn't answer

    @property
    def preferred_imbalance_percent(self) -> float:
        """Share of the partitions that it should lead and doesn't, as the controller counts before it rebalances."""
        return 100 * self.not_led / self.preferred if self.preferred else 0.0


@dataclass(frozen=True, slots=True)
class ClusterHealth:
    cluster_id: str
    controller: int | None
    brokers: tuple[BrokerHealth, ...]
    topics: int
    partitions: int
    offline: tuple[TopicPartition, ...]
    under_min_isr: tuple[TopicPartition, ...]
    at_min_isr: tuple[TopicPartition, ...]
    under_replicated: tuple[TopicPartition, ...]
    not_preferred: tuple[TopicPartition, ...]
    missing_brokers: tuple[int, ...]  # brokers with replicas that are not in the cluster

    @property
    def is_well(self) -> bool:
        dirs = [log_dir for broker in self.brokers for log_dir in broker.directories or ()]
        return (
            self.controller is not None
            and not self.offline
            and not self.under_min_isr
            and not self.under_replicated
            and not self.missing_brokers
            and all(broker.directories is not None for broker in self.brokers)
            and not any(log_dir.error for log_dir in dirs)
        )


def examine(client: ClusterClient) -> ClusterHealth:
    cluster = describe_cluster(client)
    topics = client.topics()
    states = {
        TopicPartition(topic.name, state.partition): state for topic in topics.values() for state in topic.partitions
    }
    needed = min_isr(client, sorted(topics))
    live = {broker.broker_id for broker in cluster.brokers}
    return ClusterHealth(
        cluster_id=cluster.cluster_id,
        controller=cluster.controller_id if cluster.controller_id in live else None,
        brokers=tuple(
            _broker(client, broker.broker_id, f"{broker.host}:{broker.port}", broker.rack, states)
            for broker in sorted(cluster.brokers, key=lambda broker: broker.broker_id)
        ),
        topics=len(topics),
        partitions=len(states),
        offline=tuple(tp for tp, state in states.items() if not state.is_available),
        under_min_isr=tuple(tp for tp, state in states.items() if len(state.isr) < needed[tp.topic]),
        # after one more failure acks=all is refused; topics that never had more replicas don't count
        at_min_isr=tuple(
            tp
            for tp, state in states.items()
            if len(state.isr) == needed[tp.topic] and len(state.replicas) > len(state.isr)
        ),
        under_replicated=tuple(tp for tp, state in states.items() if state.is_under_replicated),
        not_preferred=tuple(
            tp for tp, state in states.items() if state.is_available and state.leader != state.replicas[0]
        ),
        missing_brokers=tuple(sorted({broker for state in states.values() for broker in state.replicas} - live)),
    )


def _broker(
    client: ClusterClient,
    broker_id: int,
    address: str,
    rack: str | None,
    states: Mapping[TopicPartition, PartitionState],
) -> BrokerHealth:
    held = [state for state in states.values() if broker_id in state.replicas]
    try:
        directories: tuple[LogDir, ...] | None = tuple(describe_log_dirs(client, [broker_id]))
    except (KafkaError, ConnectionFailed):
        directories = None
    return BrokerHealth(
        id=broker_id,
        address=address,
        rack=rack,
        leads=sum(state.leader == broker_id for state in held),
        preferred=sum(state.replicas[0] == broker_id for state in held),
        not_led=sum(state.replicas[0] == broker_id != state.leader for state in held),
        replicas=len(held),
        out_of_sync=sum(broker_id not in state.isr for state in held),
        directories=directories,
        certificate_ends_s=None if directories is None else client.certificate_ends_s(broker_id),
    )
