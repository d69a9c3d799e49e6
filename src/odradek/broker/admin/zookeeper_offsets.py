"""Committed offsets in ZooKeeper: of OffsetCommit v0 and OffsetFetch v0, which any broker answers."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.zk.session import ZkUnavailable
from odradek.broker.zk.store import ZkStore
from odradek.broker.zk.znodes.consumers import can_be_node
from odradek.model.topology import TopicPartition


class ZooKeeperOffsets:
    """Calls wait for ZooKeeper. A group id that can't be a node's name is refused; so Kafka does with most of them."""

    def __init__(self, store: ZkStore) -> None:
        self._store = store

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offsets; partitions without one are left out."""
        with _refused_as_kafka_error(group):
            return self._store.consumer_offsets.load(group, partitions)

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        with _refused_as_kafka_error(group):
            self._store.consumer_offsets.save(group, offsets)


@contextmanager
def _refused_as_kafka_error(group: str) -> Iterator[None]:
    if not can_be_node(group):
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    try:
        yield
    except ZkUnavailable as error:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error
