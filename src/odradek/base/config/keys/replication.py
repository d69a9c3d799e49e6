"""Followers, leaders and what brokers tell each other."""

TABLE = """
auto.leader.rebalance.enable                      boolean  true      -        high    read-only
controller.socket.timeout.ms                      int      30000     -        medium  read-only
delete.records.purgatory.purge.interval.requests  int      1         -        medium  read-only
fetch.purgatory.purge.interval.requests           int      1000      -        medium  read-only
inter.broker.protocol.version                     string   3.9-IV0   version  medium  read-only
leader.imbalance.check.interval.seconds           long     300       >=1      high    read-only
leader.imbalance.per.broker.percentage            int      10        -        high    read-only
num.replica.alter.log.dirs.threads                int      -         -        high    read-only
num.replica.fetchers                              int      1         -        high    cluster-wide
producer.purgatory.purge.interval.requests        int      1000      -        medium  read-only
replica.fetch.backoff.ms                          int      1000      >=0      medium  read-only
replica.fetch.max.bytes                           int      1048576   >=0      medium  read-only
replica.fetch.min.bytes                           int      1         -        high    read-only
replica.fetch.response.max.bytes                  int      10485760  >=0      medium  read-only
replica.fetch.wait.max.ms                         int      500       -        high    read-only
replica.high.watermark.checkpoint.interval.ms     long     5000      -        high    read-only
replica.lag.time.max.ms                           long     30000     -        high    read-only
replica.selector.class                            string   -         -        medium  read-only
replica.socket.receive.buffer.bytes               int      65536     -        high    read-only
replica.socket.timeout.ms                         int      30000     -        high    read-only
unclean.leader.election.enable                    boolean  false     -        high    cluster-wide
"""
