"""Documentation of keys that Kafka doesn't document."""

TEXT = """
group.consumer.migration.policy
    KRaft: whether groups may change from the classic to the consumer protocol, or back.
group.coordinator.new.enable
    KRaft: whether its group coordinator is used.
group.share.enable
    KRaft: whether there are share groups.
log.initial.task.delay.ms
    How long after the start retention, checkpoints and flushing begin.
metadata.log.segment.min.bytes
    KRaft: the smallest segment of the metadata log.
producer.id.expiration.check.interval.ms
    How often producer ids that have expired are removed.
remote.log.manager.task.retry.backoff.max.ms
    Tiered storage: the longest pause before a failed task is repeated.
remote.log.manager.task.retry.backoff.ms
    Tiered storage: the first pause before a failed task is repeated.
remote.log.manager.task.retry.jitter
    Tiered storage: the random part of that pause.
server.max.startup.time.ms
    KRaft: how long the start of a server may take.
unclean.leader.election.interval.ms
    KRaft: how often the controller looks for partitions that need an unclean election.
unstable.api.versions.enable
    Whether versions of requests that may still change are answered.
unstable.feature.versions.enable
    KRaft: whether versions of features that may still change are offered.
zookeeper.metadata.migration.min.batch.size
    KRaft: how many records of a migration from ZooKeeper are written at once.
"""
