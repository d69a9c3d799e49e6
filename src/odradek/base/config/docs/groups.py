"""Documentation of consumer groups, producer ids and transactions."""

TEXT = """
group.initial.rebalance.delay.ms
    How long an empty group waits for more members after the first, so that a start is one rebalance and not many.
group.max.session.timeout.ms
    The longest session timeout that a member may ask for. Longer ones notice a dead member later.
group.max.size
    The most members that a group may have.
group.min.session.timeout.ms
    The shortest session timeout that a member may ask for. Shorter ones cost more heartbeats.
offset.metadata.max.bytes
    The longest text that a consumer may store beside an offset.
offsets.commit.required.acks
    The acknowledgements that an offset commit waits for. Deprecated; it should stay at all.
offsets.commit.timeout.ms
    How long an offset commit may wait for the replicas of the offsets topic.
offsets.load.buffer.size
    How much of the offsets topic is read at a time when a coordinator takes over.
offsets.retention.check.interval.ms
    How often expired offsets are looked for.
offsets.retention.minutes
    How long the offsets of a group that has lost its last member are kept.
offsets.topic.compression.codec
    The number of the codec that offsets are stored with; 0 is none.
offsets.topic.num.partitions
    How many partitions the offsets topic is created with. Must not change afterwards.
offsets.topic.replication.factor
    How many replicas the offsets topic is created with. It isn't created before there are as many brokers.
offsets.topic.segment.bytes
    The segment size of the offsets topic. Small segments compact sooner and load faster.
producer.id.expiration.ms
    How long a silent producer's sequence numbers are remembered. Afterwards its duplicates can't be detected any more.
transaction.abort.timed.out.transaction.cleanup.interval.ms
    How often transactions that took too long are looked for and aborted.
transaction.max.timeout.ms
    The longest timeout that a producer may ask for its transactions.
transaction.partition.verification.enable
    Whether a transactional write is checked against the coordinator, so that a stray one can't hang a partition.
transaction.remove.expired.transaction.cleanup.interval.ms
    How often transactional ids that are not used any more are removed.
transaction.state.log.load.buffer.size
    How much of the transaction topic is read at a time when a coordinator takes over.
transaction.state.log.min.isr
    The min.insync.replicas of the transaction topic.
transaction.state.log.num.partitions
    How many partitions the transaction topic is created with. Must not change afterwards.
transaction.state.log.replication.factor
    How many replicas the transaction topic is created with. It isn't created before there are as many brokers.
transaction.state.log.segment.bytes
    The segment size of the transaction topic. Small segments compact sooner and load faster.
transactional.id.expiration.ms
    How long a transactional id without news is remembered.
"""
