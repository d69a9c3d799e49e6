"""Documentation of KRaft mode and features of KRaft clusters."""

TEXT = """
alter.config.policy.kraft.compatibility.enable
    KRaft: what a policy for configuration changes is shown.
broker.heartbeat.interval.ms
    KRaft: how often brokers report to the controller.
broker.session.timeout.ms
    KRaft: how long a silent broker stays registered.
controller.listener.names
    KRaft: the controllers' listeners.
controller.quorum.append.linger.ms
    KRaft: how long the leader of the quorum gathers writes.
controller.quorum.bootstrap.servers
    KRaft: where the quorum is found.
controller.quorum.election.backoff.max.ms
    KRaft: the longest pause before another election.
controller.quorum.election.timeout.ms
    KRaft: how long a candidate waits for votes.
controller.quorum.fetch.timeout.ms
    KRaft: how long a voter waits for its leader before it stands itself.
controller.quorum.request.timeout.ms
    KRaft: how long a member of the quorum waits for an answer.
controller.quorum.retry.backoff.ms
    KRaft: the pause before a failed request is repeated.
controller.quorum.voters
    KRaft: the voters, as id@host:port.
eligible.leader.replicas.enable
    KRaft: whether the controller remembers replicas that could lead safely though they left the ISR.
group.consumer.assignors
    The consumer protocol of KRaft clusters: how partitions are assigned on the server.
group.consumer.heartbeat.interval.ms
    The consumer protocol of KRaft clusters: how often members report.
group.consumer.max.heartbeat.interval.ms
    The consumer protocol of KRaft clusters: the longest heartbeat interval of a group.
group.consumer.max.session.timeout.ms
    The consumer protocol of KRaft clusters: the longest session timeout of a group.
group.consumer.max.size
    The consumer protocol of KRaft clusters: the most members of a group.
group.consumer.min.heartbeat.interval.ms
    The consumer protocol of KRaft clusters: the shortest heartbeat interval of a group.
group.consumer.min.session.timeout.ms
    The consumer protocol of KRaft clusters: the shortest session timeout of a group.
group.consumer.session.timeout.ms
    The consumer protocol of KRaft clusters: how long a silent member stays.
group.coordinator.append.linger.ms
    KRaft's group coordinator: how long writes are gathered.
group.coordinator.rebalance.protocols
    Which group protocols are spoken.
group.coordinator.threads
    KRaft's group coordinator: its threads.
group.share.delivery.count.limit
    Share groups: how often a record is tried.
group.share.heartbeat.interval.ms
    Share groups: how often members report.
group.share.max.groups
    Share groups: how many there may be.
group.share.max.heartbeat.interval.ms
    Share groups: the longest heartbeat interval.
group.share.max.record.lock.duration.ms
    Share groups: the longest time for which a record may be acquired.
group.share.max.session.timeout.ms
    Share groups: the longest session timeout.
group.share.max.size
    Share groups: the most members.
group.share.min.heartbeat.interval.ms
    Share groups: the shortest heartbeat interval.
group.share.min.record.lock.duration.ms
    Share groups: the shortest time for which a record may be acquired.
group.share.min.session.timeout.ms
    Share groups: the shortest session timeout.
group.share.partition.max.record.locks
    Share groups: how many records of a partition may be acquired at once.
group.share.record.lock.duration.ms
    Share groups: for how long a record is acquired.
group.share.session.timeout.ms
    Share groups: how long a silent member stays.
initial.broker.registration.timeout.ms
    KRaft: how long a starting broker tries to register.
log.dir.failure.timeout.ms
    KRaft: how long a broker with a failed directory goes on before it must have notified the controller.
metadata.log.dir
    KRaft: the directory of the metadata log.
metadata.log.max.record.bytes.between.snapshots
    KRaft: how much metadata is written before the next snapshot.
metadata.log.max.snapshot.interval.ms
    KRaft: the longest time between snapshots.
metadata.log.segment.bytes
    KRaft: the segment size of the metadata log.
metadata.log.segment.ms
    KRaft: the segment age of the metadata log.
metadata.max.idle.interval.ms
    KRaft: how often an idle controller writes a sign of life.
metadata.max.retention.bytes
    KRaft: how large metadata log and snapshots may become.
metadata.max.retention.ms
    KRaft: how long metadata log and snapshots are kept.
process.roles
    KRaft: what this process is.
sasl.mechanism.controller.protocol
    KRaft: the SASL mechanism towards controllers.
zookeeper.metadata.migration.enable
    Migration from ZooKeeper to KRaft.
"""
