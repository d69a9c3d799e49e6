"""Where a consumer should rather read: `replica.selector.class`.

Of Apache Kafka's selectors there is the one that knows racks: a consumer that says its rack is sent to an in-sync
replica in it, if the leader is elsewhere.
"""

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.logs import get_logger
from odradek.model.metadata_image import MetadataCache
from odradek.replication.fetching import FetchTarget, FetchTerms, PreferredReplica
from odradek.replication.partition import Partition

log = get_logger(__name__)

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def preferred_replica_chooser(config: BrokerConfig, metadata: MetadataCache) -> PreferredReplica | None:
    selector_class = config.get("replica.selector.class")
    if selector_class is None:
        return None
    if selector_class != RACK_AWARE:
        log.warning("replica.selector.class is not known here: consumers read from leaders", selector=selector_class)
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
