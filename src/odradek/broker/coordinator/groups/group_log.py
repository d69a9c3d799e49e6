"""The topic __consumer_offsets as the group coordinator uses it."""

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.broker.coordinator.groups.group_replay import GroupReplay
from odradek.broker.coordinator.state.state_log import StateLog, StateTopic
from odradek.broker.replication.partition_table import PartitionTable
from odradek.model.metadata_image import MetadataCache
from odradek.model.topic_names import OFFSETS_TOPIC
from odradek.protocol.compression import Codec


class GroupLog(StateLog):
    def __init__(self, config: BrokerConfig, replicas: PartitionTable, metadata: MetadataCache, clock: Clock) -> None:
        topic = StateTopic(
            OFFSETS_TOPIC,
            partitions_to_be=config.offsets_topic_num_partitions,
            acks=config.offsets_commit_required_acks,
            timeout_ms=config.offsets_commit_timeout_ms,
            codec=Codec(config.offsets_topic_compression_codec),
            load_bytes=config.offsets_load_buffer_size,
        )
        super().__init__(topic, replicas, metadata, clock)

    def replay(self, partition: int) -> GroupReplay:
        replayed = GroupReplay()
        for buf, pos, header in self.read(partition):
            replayed.apply(buf, pos, header)
        return replayed
