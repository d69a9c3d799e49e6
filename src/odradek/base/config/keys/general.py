"""Who the broker is, how many threads it runs and how it stops."""

TABLE = """
alter.config.policy.class.name             class    -         -       low     read-only
auto.create.topics.enable                  boolean  true      -       high    read-only
background.threads                         int      10        >=1     high    cluster-wide
broker.id                                  int      -1        -       high    read-only
broker.id.generation.enable                boolean  true      -       medium  read-only
broker.rack                                string   -         -       medium  read-only
controlled.shutdown.enable                 boolean  true      -       medium  read-only
controlled.shutdown.max.retries            int      3         -       medium  read-only
controlled.shutdown.retry.backoff.ms       long     5000      -       medium  read-only
create.topic.policy.class.name             class    -         -       low     read-only
default.replication.factor                 int      1         -       medium  read-only
delete.topic.enable                        boolean  true      -       high    read-only
early.start.listeners                      string   -         -       high    read-only
fetch.max.bytes                            int      57671680  >=1024  medium  read-only
max.incremental.fetch.session.cache.slots  int      1000      >=0     medium  read-only
max.request.partition.size.limit           int      2000      >=1     medium  read-only
node.id                                    int      -1        -       high    read-only
num.io.threads                             int      8         >=1     high    cluster-wide
num.partitions                             int      1         >=1     medium  read-only
num.recovery.threads.per.data.dir          int      1         >=1     high    cluster-wide
request.timeout.ms                         int      30000     -       high    read-only
reserved.broker.max.id                     int      1000      >=0     medium  read-only
"""
