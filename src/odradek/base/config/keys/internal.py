"""Keys that Kafka doesn't document and DescribeConfigs doesn't list unless they are set."""

TABLE = """
group.consumer.migration.policy               string   disabled             -       medium  read-only  no-effect:kraft
group.coordinator.new.enable                  boolean  false                -       medium  read-only  refused:kraft
group.share.enable                            boolean  false                -       medium  read-only  refused:kraft
log.initial.task.delay.ms                     long     30000                >=0     low     read-only  obeyed
metadata.log.segment.min.bytes                int      8388608              >=12    high    read-only  no-effect:kraft
producer.id.expiration.check.interval.ms      int      600000               >=1     low     read-only  obeyed
remote.log.manager.task.retry.backoff.max.ms  long     30000                >=1     low     read-only  no-effect:tiered
remote.log.manager.task.retry.backoff.ms      long     500                  >=1     low     read-only  no-effect:tiered
remote.log.manager.task.retry.jitter          double   0.2                  0..0.5  low     read-only  no-effect:tiered
server.max.startup.time.ms                    long     9223372036854775807  >=0     medium  read-only  no-effect:kraft
unclean.leader.election.interval.ms           long     300000               >=1     medium  read-only  no-effect:kraft
unstable.api.versions.enable                  boolean  false                -       high    read-only  refused:unstable
unstable.feature.versions.enable              boolean  false                -       high    read-only  no-effect:kraft
zookeeper.metadata.migration.min.batch.size   int      200                  >=1     medium  read-only  no-effect:kraft
"""
