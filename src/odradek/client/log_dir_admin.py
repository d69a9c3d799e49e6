"""Log directories of brokers, for the tools: their paths, their replicas, their free space."""

from collections.abc import Iterable
from functools import partial

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.value_classes import dataclass
from odradek.client.cluster_client import ClusterClient
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)


@dataclass(frozen=True, slots=True)
class ReplicaOnDisk:
    tp: TopicPartition
    size: int
    lag: int
    is_future: bool  # a copy that will replace the replica in another directory


@dataclass(frozen=True, slots=True)
class LogDir:
    broker: int
    path: str
    error: ErrorCode
    replicas: tuple[ReplicaOnDisk, ...]
    total_bytes: int | None  # of the volume; None where the broker doesn't say
    usable_bytes: int | None

    @property
    def size(self) -> int:
        return sum(replica.size for replica in self.replicas)

    @property
    def used_percent(self) -> float | None:
        if not self.total_bytes or self.usable_bytes is None:
            return None
        return 100 * (self.total_bytes - self.usable_bytes) / self.total_bytes


def describe_log_dirs(client: ClusterClient, brokers: Iterable[int]) -> list[LogDir]:
    """Log directories of these brokers, with all their replicas."""
    return [log_dir for broker in sorted(brokers) for log_dir in client.retrying(partial(ask_log_dirs, client, broker))]


def ask_log_dirs(
    client: ClusterClient, broker: int, partitions: Iterable[TopicPartition] | None = None
) -> list[LogDir]:
    """Send one DescribeLogDirs to one broker, about these partitions or about all of them."""
    topics: dict[str, list[int]] = {}
    for tp in partitions or ():
        topics.setdefault(tp.topic, []).append(tp.partition)
    wanted = [DescribableLogDirTopic(topic=name, partitions=numbers) for name, numbers in topics.items()]
    request = DescribeLogDirsRequest(topics=None if partitions is None else wanted)
    answer = client.ask_broker(broker, request, DescribeLogDirsResponse)
    if answer.error_code:
        code = ErrorCode(answer.error_code)
        raise KafkaError(code, f"broker {broker} doesn't tell of its directories: {code.name}")
    return [
        LogDir(
            broker=broker,
            path=result.log_dir,
            error=ErrorCode(result.error_code),
            replicas=tuple(
                ReplicaOnDisk(
                    TopicPartition(topic.name, p.partition_index), p.partition_size, p.offset_lag, p.is_future_key
                )
                for topic in result.topics
                for p in topic.partitions
            ),
            total_bytes=None if result.total_bytes < 0 else result.total_bytes,
            usable_bytes=None if result.usable_bytes < 0 else result.usable_bytes,
        )
        for result in answer.results
    ]
