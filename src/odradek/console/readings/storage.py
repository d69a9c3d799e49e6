"""What lies on the brokers' disks: DescribeLogDirs of each."""

from collections.abc import Mapping
from dataclasses import dataclass

from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.cluster_client import ClusterClient
from odradek.model.topology import TopicPartition
from odradek.network.broker_client import ConnectionFailed, UnsupportedByBroker
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse


@dataclass(frozen=True, slots=True)
class LogDirectory:
    broker: int
    path: str
    problem: str | None
    used_bytes: int
    volume_bytes: int | None
    free_bytes: int | None


@dataclass(frozen=True, slots=True)
class StorageState:
    directories: tuple[LogDirectory, ...]
    sizes: Mapping[tuple[TopicPartition, int], int]
    """Of each replica: partition and broker."""
    topic_bytes: Mapping[str, int]
    """Of all replicas together."""


def read_storage(client: ClusterClient, before: StorageState | None) -> StorageState:
    directories: list[LogDirectory] = []
    sizes: dict[tuple[TopicPartition, int], int] = {}
    topic_bytes: dict[str, int] = {}
    for broker in client.brokers():
        try:
            answer = client.ask_broker(broker, DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
        except (KafkaError, ConnectionFailed, UnsupportedByBroker):
            continue
        for result in answer.results:
            used = 0
            for topic in result.topics:
                for partition in topic.partitions:
                    used += partition.partition_size
                    topic_bytes[topic.name] = topic_bytes.get(topic.name, 0) + partition.partition_size
                    if not partition.is_future_key:
                        sizes[TopicPartition(topic.name, partition.partition_index), broker] = partition.partition_size
            directories.append(
                LogDirectory(
                    broker=broker,
                    path=result.log_dir,
                    problem=ErrorCode(result.error_code).name if result.error_code else None,
                    used_bytes=used,
                    volume_bytes=_known(result.total_bytes),
                    free_bytes=_known(result.usable_bytes),
                )
            )
    return StorageState(tuple(directories), sizes, topic_bytes)


def _known(value: int) -> int | None:
    return None if value < 0 else value
