"""Keys of replication: followers, leaders and the requests between brokers."""

TABLE = """
auto.leader.rebalance.enable                      boolean  true      -        high    read-only     obeyed
controller.socket.timeout.ms                      int      30000     -        medium  read-only     obeyed
delete.records.purgatory.purge.interval.requests  int      1         -        medium  read-only     no-effect:purgatory
fetch.purgatory.purge.interval.requests           int      1000      -        medium  read-only     no-effect:purgatory
inter.broker.protocol.version                     string   3.9-IV0   version  medium  read-only     obeyed
leader.imbalance.check.interval.seconds           long     300       >=1      high    read-only     obeyed
leader.imbalance.per.broker.percentage            int      10        -        high    read-only     obeyed
num.replica.alter.log.dirs.threads                int      -         -        high    read-only     obeyed
num.replica.fetchers                              int      1         -        high    cluster-wide  obeyed
producer.purgatory.purge.interval.requests        int      1000      -        medium  read-only     no-effect:purgatory
replica.fetch.backoff.ms                          int      1000      >=0      medium  read-only     obeyed
replica.fetch.max.bytes                           int      1048576   >=0      medium  read-only     obeyed
replica.fetch.min.bytes                           int      1         -        high    read-only     obeyed
replica.fetch.response.max.bytes                  int      10485760  >=0      medium  read-only     obeyed
replica.fetch.wait.max.ms                         int      500       -        high    read-only     obeyed
replica.high.watermark.checkpoint.interval.ms     long     5000      -        high    read-only     obeyed
replica.lag.time.max.ms                           long     30000     -        high    read-only     obeyed
replica.selector.class  string
    -  org.apache.kafka.common.replica.LeaderSelector|org.apache.kafka.common.replica.RackAwareReplicaSelector
    medium  read-only  obeyed
replica.socket.receive.buffer.bytes               int      -1        -        high    read-only     obeyed
replica.socket.timeout.ms                         int      30000     -        high    read-only     obeyed
unclean.leader.election.enable                    boolean  false     -        high    cluster-wide  obeyed
"""
