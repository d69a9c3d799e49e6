"""Moving replicas from one directory of their broker to another (AlterReplicaLogDirs), and their progress."""

from collections import defaultdict
from collections.abc import Mapping

from odradek.base.errors import ErrorCode
from odradek.base.value_classes import dataclass
from odradek.client.cluster_client import ClusterClient
from odradek.client.log_dir_admin import describe_log_dirs
from odradek.model.topology import PartitionReplica, TopicPartition
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)


@dataclass(frozen=True, slots=True)
class ReplicaPlace:
    directory: str | None  # None: in no directory that works
    future_directory: str | None  # where it is being copied to


def begin_moves(client: ClusterClient, wanted: Mapping[PartitionReplica, str]) -> dict[PartitionReplica, ErrorCode]:
    """Start the moves; return the broker's answer for each replica."""
    by_broker: defaultdict[int, dict[TopicPartition, str]] = defaultdict(dict)
    for replica, directory in wanted.items():
        by_broker[replica.broker][replica.partition] = directory
    outcomes: dict[PartitionReplica, ErrorCode] = {}
    for broker, moves in by_broker.items():
        dirs = [
            AlterReplicaLogDir(
                path=directory, topics=[AlterReplicaLogDirTopic(name=tp.topic, partitions=[tp.partition])]
            )
            for tp, directory in moves.items()
        ]
        answer = client.ask_broker(broker, AlterReplicaLogDirsRequest(dirs=dirs), AlterReplicaLogDirsResponse)
        for topic in answer.results:
            for partition in topic.partitions:
                tp = TopicPartition(topic.topic_name, partition.partition_index)
                outcomes[PartitionReplica(tp, broker)] = ErrorCode(partition.error_code)
    return outcomes


def replica_places(
    client: ClusterClient, replicas: Mapping[PartitionReplica, str]
) -> dict[PartitionReplica, ReplicaPlace]:
    """Return the directory of each replica; replicas of brokers that are down are left out."""
    live = client.brokers().keys() & {replica.broker for replica in replicas}
    found: dict[PartitionReplica, ReplicaPlace] = {
        replica: ReplicaPlace(None, None) for replica in replicas if replica.broker in live
    }
    for log_dir in describe_log_dirs(client, live):
        for held in log_dir.replicas:
            replica = PartitionReplica(held.tp, log_dir.broker)
            if replica not in found:
                continue
            place = found[replica]
            found[replica] = (
                ReplicaPlace(place.directory, log_dir.path)
                if held.is_future
                else ReplicaPlace(log_dir.path, place.future_directory)
            )
    return found
