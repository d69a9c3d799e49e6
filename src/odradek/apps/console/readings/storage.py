"""Log directories of the brokers, as far as they answer."""

from collections.abc import Mapping
from dataclasses import dataclass

from odradek.base.errors import KafkaError
from odradek.client.broker_client import ConnectionFailed, UnsupportedByBroker
from odradek.client.cluster_client import ClusterClient
from odradek.client.log_dir_admin import LogDir, describe_log_dirs
from odradek.model.topology import TopicPartition


@dataclass(frozen=True, slots=True)
class StorageState:
    directories: tuple[LogDir, ...]
    sizes: Mapping[tuple[TopicPartition, int], int]
    """Size of each replica, by partition and broker."""
    topic_bytes: Mapping[str, int]
    """Size of all replicas of a topic together."""


def read_storage(client: ClusterClient, before: StorageState | None) -> StorageState:
    directories: list[LogDir] = []
    for broker in client.brokers():
        try:
            directories += describe_log_dirs(client, [broker])
        except (KafkaError, ConnectionFailed, UnsupportedByBroker):
            continue
    sizes: dict[tuple[TopicPartition, int], int] = {}
    topic_bytes: dict[str, int] = {}
    for directory in directories:
        for replica in directory.replicas:
            topic_bytes[replica.tp.topic] = topic_bytes.get(replica.tp.topic, 0) + replica.size
            if not replica.is_future:
                sizes[replica.tp, directory.broker] = replica.size
    return StorageState(tuple(directories), sizes, topic_bytes)
