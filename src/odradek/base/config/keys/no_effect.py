"""Keys that are known but change nothing here: KRaft mode, the KRaft-only group protocols, tiered storage.

They are accepted, checked and shown like any other key, so that a server.properties written for Kafka starts unchanged.
`process.roles` and `zookeeper.metadata.migration.enable` are the exceptions: the broker refuses to start with
them, because their writer expects a different coordination altogether.
"""

TABLE = """
alter.config.policy.kraft.compatibility.enable      boolean  false                -             low     read-only
broker.heartbeat.interval.ms                        int      2000                 -             medium  read-only
broker.session.timeout.ms                           int      9000                 -             medium  read-only
controller.listener.names                           string   -                    -             high    read-only
controller.quorum.append.linger.ms                  int      25                   -             medium  read-only
controller.quorum.bootstrap.servers                 list     ""                   -             high    read-only
controller.quorum.election.backoff.max.ms           int      1000                 -             high    read-only
controller.quorum.election.timeout.ms               int      1000                 -             high    read-only
controller.quorum.fetch.timeout.ms                  int      2000                 -             high    read-only
controller.quorum.request.timeout.ms                int      2000                 -             medium  read-only
controller.quorum.retry.backoff.ms                  int      20                   -             low     read-only
controller.quorum.voters                            list     ""                   -             high    read-only
eligible.leader.replicas.enable                     boolean  false                -             high    read-only
group.consumer.assignors  list
    org.apache.kafka.coordinator.group.assignor.UniformAssignor,org.apache.kafka.coordinator.group.assignor.RangeAssignor
    -  medium  read-only
group.consumer.heartbeat.interval.ms                int      5000                 >=1           medium  read-only
group.consumer.max.heartbeat.interval.ms            int      15000                >=1           medium  read-only
group.consumer.max.session.timeout.ms               int      60000                >=1           medium  read-only
group.consumer.max.size                             int      2147483647           >=1           medium  read-only
group.consumer.min.heartbeat.interval.ms            int      5000                 >=1           medium  read-only
group.consumer.min.session.timeout.ms               int      45000                >=1           medium  read-only
group.consumer.session.timeout.ms                   int      45000                >=1           medium  read-only
group.coordinator.append.linger.ms                  int      10                   >=0           medium  read-only
group.coordinator.rebalance.protocols  list
    classic  consumer|classic|share|unknown  medium  read-only
group.coordinator.threads                           int      1                    >=1           medium  read-only
group.share.delivery.count.limit                    int      5                    2..10         medium  read-only
group.share.heartbeat.interval.ms                   int      5000                 >=1           medium  read-only
group.share.max.groups                              short    10                   1..100        medium  read-only
group.share.max.heartbeat.interval.ms               int      15000                >=1           medium  read-only
group.share.max.record.lock.duration.ms             int      60000                30000..3600000  medium  read-only
group.share.max.session.timeout.ms                  int      60000                >=1           medium  read-only
group.share.max.size                                short    200                  10..1000      medium  read-only
group.share.min.heartbeat.interval.ms               int      5000                 >=1           medium  read-only
group.share.min.record.lock.duration.ms             int      15000                1000..30000   medium  read-only
group.share.min.session.timeout.ms                  int      45000                >=1           medium  read-only
group.share.partition.max.record.locks              int      200                  100..10000    medium  read-only
group.share.record.lock.duration.ms                 int      30000                1000..60000   medium  read-only
group.share.session.timeout.ms                      int      45000                >=1           medium  read-only
initial.broker.registration.timeout.ms              int      60000                -             medium  read-only
log.dir.failure.timeout.ms                          long     30000                >=1           low     read-only
log.local.retention.bytes                           long     -2                   >=-2          medium  cluster-wide
log.local.retention.ms                              long     -2                   >=-2          medium  cluster-wide
metadata.log.dir                                    string   -                    -             high    read-only
metadata.log.max.record.bytes.between.snapshots     long     20971520             >=1           high    read-only
metadata.log.max.snapshot.interval.ms               long     3600000              >=0           high    read-only
metadata.log.segment.bytes                          int      1073741824           >=12          high    read-only
metadata.log.segment.ms                             long     604800000            -             high    read-only
metadata.max.idle.interval.ms                       int      500                  >=0           low     read-only
metadata.max.retention.bytes                        long     104857600            -             high    read-only
metadata.max.retention.ms                           long     604800000            -             high    read-only
process.roles                                       list     ""                   broker|controller  high    read-only
remote.fetch.max.wait.ms                            int      500                  >=1           medium  cluster-wide
remote.log.index.file.cache.total.size.bytes        long     1073741824           >=1           low     cluster-wide
remote.log.manager.copier.thread.pool.size          int      -1                   1..2147483647|-1  medium  read-only
remote.log.manager.copy.max.bytes.per.second        long     9223372036854775807  >=1           medium  cluster-wide
remote.log.manager.copy.quota.window.num            int      11                   >=1           medium  read-only
remote.log.manager.copy.quota.window.size.seconds   int      1                    >=1           medium  read-only
remote.log.manager.expiration.thread.pool.size      int      -1                   1..2147483647|-1  medium  read-only
remote.log.manager.fetch.max.bytes.per.second       long     9223372036854775807  >=1           medium  cluster-wide
remote.log.manager.fetch.quota.window.num           int      11                   >=1           medium  read-only
remote.log.manager.fetch.quota.window.size.seconds  int      1                    >=1           medium  read-only
remote.log.manager.task.interval.ms                 long     30000                >=1           low     read-only
remote.log.manager.thread.pool.size                 int      10                   >=1           medium  read-only
remote.log.metadata.custom.metadata.max.bytes       int      128                  >=0           low     read-only
remote.log.metadata.manager.class.name  string
    org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager  non-empty  medium  read-only
remote.log.metadata.manager.class.path              string   -                    -             medium  read-only
remote.log.metadata.manager.impl.prefix             string   rlmm.config.         non-empty     medium  read-only
remote.log.metadata.manager.listener.name           string   -                    non-empty     medium  read-only
remote.log.reader.max.pending.tasks                 int      100                  >=1           medium  read-only
remote.log.reader.threads                           int      10                   >=1           medium  read-only
remote.log.storage.manager.class.name               string   -                    non-empty     medium  read-only
remote.log.storage.manager.class.path               string   -                    -             medium  read-only
remote.log.storage.manager.impl.prefix              string   rsm.config.          non-empty     medium  read-only
remote.log.storage.system.enable                    boolean  false                -             medium  read-only
sasl.mechanism.controller.protocol                  string   GSSAPI               -             high    read-only
zookeeper.metadata.migration.enable                 boolean  false                -             high    read-only
"""
