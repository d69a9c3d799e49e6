"""Reads a cluster for the planner: live brokers, their replicas with sizes, and free disk space."""

from odradek.apps.reassign.core.view import BrokerView, ClusterView, PartitionView
from odradek.base.errors import KafkaError
from odradek.client.broker_client import ConnectionFailed
from odradek.client.cluster_admin import describe_cluster
from odradek.client.cluster_client import ClusterClient
from odradek.client.log_dir_admin import LogDir, describe_log_dirs
from odradek.client.reassignments import ongoing_reassignments
from odradek.client.topic_admin import min_isr
from odradek.model.topology import TopicPartition


def read_view(client: ClusterClient) -> ClusterView:
    cluster = describe_cluster(client)
    topics = client.topics()
    moving = ongoing_reassignments(client)
    sizes: dict[TopicPartition, int] = {}
    brokers: dict[int, BrokerView] = {}
    for member in cluster.brokers:
        try:
            directories = describe_log_dirs(client, [member.broker_id])
        except (KafkaError, ConnectionFailed):
            continue  # it is dying, and counts as dead for a plan
        for replica in (replica for directory in directories for replica in directory.replicas):
            sizes[replica.tp] = max(replica.size, sizes.get(replica.tp, 0))
        total, usable = _room(directories)
        brokers[member.broker_id] = BrokerView(member.broker_id, member.rack, total, usable)
    return ClusterView(
        brokers,
        {
            tp: PartitionView(p.replicas, p.leader, p.isr, sizes.get(tp, 0), tp in moving)
            for topic in topics.values()
            for p in topic.partitions
            for tp in (TopicPartition(topic.name, p.partition),)
        },
        min_isr(client, sorted(topics)),
    )


def _room(directories: list[LogDir]) -> tuple[int | None, int | None]:
    """Return total and usable bytes of all volumes. Directories with equal sizes and equal free space count as one
    volume."""
    volumes = {(d.total_bytes, d.usable_bytes or 0) for d in directories if not d.error and d.total_bytes}
    return (sum(v[0] or 0 for v in volumes), sum(v[1] for v in volumes)) if volumes else (None, None)
