"""The topic __consumer_offsets as the group coordinator uses it: where a group is kept, writing, reading back."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.groups.core.state_batch import state_batch
from odradek.broker.coordinator.groups.group_replay import GroupReplay, replay
from odradek.broker.replication.replica_manager import ReplicaManager
from odradek.model.metadata_image import MetadataCache
from odradek.model.topic_names import OFFSETS_TOPIC
from odradek.model.topology import TopicPartition
from odradek.protocol.compression import Codec

EncodedRecord: TypeAlias = tuple[bytes, bytes | None]
"""A key and its value; None takes away what the key had."""


class GroupLog:
    def __init__(self, config: BrokerConfig, replicas: ReplicaManager, metadata: MetadataCache, clock: Clock) -> None:
        self._replicas = replicas
        self._metadata = metadata
        self._clock = clock
        self._partitions_to_be = config.integer("offsets.topic.num.partitions")
        self._acks = config.integer("offsets.commit.required.acks")
        self._timeout_ms = config.integer("offsets.commit.timeout.ms")
        self._codec = Codec(config.integer("offsets.topic.compression.codec"))
        self._load_bytes = config.integer("offsets.load.buffer.size")

    def partition_for(self, group_id: str) -> int:
        topic = self._metadata.image.topics.get(OFFSETS_TOPIC)
        count = self._partitions_to_be if topic is None else len(topic.partitions)
        hashed = java_hash(group_id)
        return 0 if hashed == -(2**31) else abs(hashed) % count

    def append(self, partition: int, records: Iterable[EncodedRecord], done: Callable[[ErrorCode], None]) -> None:
        """All of them or none. `done` is called once, now or later, when it is known whether they are there to stay."""
        batch = state_batch(records, self._clock.now_ms(), self._codec)
        self._replicas.append_own(
            TopicPartition(OFFSETS_TOPIC, partition),
            memoryview(batch),
            acks=self._acks,
            timeout_ms=self._timeout_ms,
            done=lambda error, _: done(error),
        )

    def is_new(self, partition: int) -> bool:
        """Return whether nothing was ever written to it, as far as is known."""
        found = self._replicas.partitions.get(TopicPartition(OFFSETS_TOPIC, partition))
        return found is not None and found.log.log_end_offset == 0

    def replay(self, partition: int) -> GroupReplay:
        return replay(self._replicas.find(TopicPartition(OFFSETS_TOPIC, partition)).log, self._load_bytes)


def java_hash(text: str) -> int:
    """Java's String.hashCode: every broker of a cluster must find the same partition for a group."""
    hashed = 0
    units = text.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        hashed = (31 * hashed + (high << 8 | low)) & 0xFFFF_FFFF
    return hashed - (hashed >> 31 << 32)
