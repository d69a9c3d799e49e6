"""KRaft mode, and features of KRaft clusters: the newer group protocols, share groups, the metadata log."""

TABLE = """
alter.config.policy.kraft.compatibility.enable   boolean  false       -         low     read-only  no-effect:kraft
broker.heartbeat.interval.ms                     int      2000        -         medium  read-only  no-effect:kraft
broker.session.timeout.ms                        int      9000        -         medium  read-only  no-effect:kraft
controller.listener.names                        string   -           -         high    read-only  refused:kraft
controller.quorum.append.linger.ms               int      25          -         medium  read-only  no-effect:kraft
controller.quorum.bootstrap.servers              list     ""          -         high    read-only  no-effect:kraft
controller.quorum.election.backoff.max.ms        int      1000        -         high    read-only  no-effect:kraft
controller.quorum.election.timeout.ms            int      1000        -         high    read-only  no-effect:kraft
controller.quorum.fetch.timeout.ms               int      2000        -         high    read-only  no-effect:kraft
controller.quorum.request.timeout.ms             int      2000        -         medium  read-only  no-effect:kraft
controller.quorum.retry.backoff.ms               int      20          -         low     read-only  no-effect:kraft
controller.quorum.voters                         list     ""          -         high    read-only  no-effect:kraft
eligible.leader.replicas.enable                  boolean  false       -         high    read-only  no-effect:kraft
group.consumer.assignors  list
    org.apache.kafka.coordinator.group.assignor.UniformAssignor,org.apache.kafka.coordinator.group.assignor.RangeAssignor
    -  medium  read-only  no-effect:kraft
group.consumer.heartbeat.interval.ms             int      5000        >=1       medium  read-only  no-effect:kraft
group.consumer.max.heartbeat.interval.ms         int      15000       >=1       medium  read-only  no-effect:kraft
group.consumer.max.session.timeout.ms            int      60000       >=1       medium  read-only  no-effect:kraft
group.consumer.max.size                          int      2147483647  >=1       medium  read-only  no-effect:kraft
group.consumer.min.heartbeat.interval.ms         int      5000        >=1       medium  read-only  no-effect:kraft
group.consumer.min.session.timeout.ms            int      45000       >=1       medium  read-only  no-effect:kraft
group.consumer.session.timeout.ms                int      45000       >=1       medium  read-only  no-effect:kraft
group.coordinator.append.linger.ms               int      10          >=0       medium  read-only  no-effect:kraft
group.coordinator.rebalance.protocols  list
    classic  consumer|classic|share|unknown  medium  read-only  refused:kraft
group.coordinator.threads                        int      1           >=1       medium  read-only  no-effect:kraft
group.share.delivery.count.limit                 int      5           2..10     medium  read-only  no-effect:kraft
group.share.heartbeat.interval.ms                int      5000        >=1       medium  read-only  no-effect:kraft
group.share.max.groups                           short    10          1..100    medium  read-only  no-effect:kraft
group.share.max.heartbeat.interval.ms            int      15000       >=1       medium  read-only  no-effect:kraft
group.share.max.record.lock.duration.ms          int      60000       30000..3600000  medium  read-only  no-effect:kraft
group.share.max.session.timeout.ms               int      60000       >=1       medium  read-only  no-effect:kraft
group.share.max.size                             short    200         10..1000  medium  read-only  no-effect:kraft
group.share.min.heartbeat.interval.ms            int      5000        >=1       medium  read-only  no-effect:kraft
group.share.min.record.lock.duration.ms          int      15000       1000..30000  medium  read-only  no-effect:kraft
group.share.min.session.timeout.ms               int      45000       >=1       medium  read-only  no-effect:kraft
group.share.partition.max.record.locks           int      200         100..10000  medium  read-only  no-effect:kraft
group.share.record.lock.duration.ms              int      30000       1000..60000  medium  read-only  no-effect:kraft
group.share.session.timeout.ms                   int      45000       >=1       medium  read-only  no-effect:kraft
initial.broker.registration.timeout.ms           int      60000       -         medium  read-only  no-effect:kraft
log.dir.failure.timeout.ms                       long     30000       >=1       low     read-only  no-effect:kraft
metadata.log.dir                                 string   -           -         high    read-only  no-effect:kraft
metadata.log.max.record.bytes.between.snapshots  long     20971520    >=1       high    read-only  no-effect:kraft
metadata.log.max.snapshot.interval.ms            long     3600000     >=0       high    read-only  no-effect:kraft
metadata.log.segment.bytes                       int      1073741824  >=12      high    read-only  no-effect:kraft
metadata.log.segment.ms                          long     604800000   -         high    read-only  no-effect:kraft
metadata.max.idle.interval.ms                    int      500         >=0       low     read-only  no-effect:kraft
metadata.max.retention.bytes                     long     104857600   -         high    read-only  no-effect:kraft
metadata.max.retention.ms                        long     604800000   -         high    read-only  no-effect:kraft
process.roles  list
    ""  broker|controller  high  read-only  refused:kraft
sasl.mechanism.controller.protocol               string   GSSAPI      -         high    read-only  no-effect:kraft
zookeeper.metadata.migration.enable              boolean  false       -         high    read-only  refused:kraft
"""
