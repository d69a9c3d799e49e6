"""Choice of the replica that a consumer reads from: `replica.selector.class`.

With Kafka's RackAwareReplicaSelector a consumer that names its rack is sent to an in-sync replica in it, if the leader
is elsewhere. With LeaderSelector, as without any, consumers read from leaders.
"""

from odradek.base.config.broker_config import BrokerConfig
from odradek.broker.replication.leader.fetch_reader import FetchTarget, FetchTerms, PreferredReplica
from odradek.broker.replication.partition import Partition
from odradek.model.metadata_image import MetadataCache

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def preferred_replica_chooser(config: BrokerConfig, metadata: MetadataCache) -> PreferredReplica | None:
    if config.replica_selector_class != RACK_AWARE:
        return None

    def choose(partition: Partition, target: FetchTarget, terms: FetchTerms) -> int | None:
        brokers = metadata.image.brokers
        leader = brokers.get(partition.leader_id)
        if not partition.is_leader or leader is None or leader.rack == terms.rack:
            return None
        near = [
            (follower.log_end_offset, follower.broker_id)
            for follower in partition.followers.by_id.values()
            if follower.broker_id in partition.isr
            and follower.log_start_offset <= target.fetch_offset <= follower.log_end_offset
            and (broker := brokers.get(follower.broker_id)) is not None
            and broker.rack == terms.rack
            and broker.endpoint(terms.listener) is not None
        ]
        return max(near)[1] if near else None

    return choose
