"""Keys of the broker's identity, its threads and its shutdown."""

TABLE = """
alter.config.policy.class.name             class    -         -       low     read-only     refused:java-class
auto.create.topics.enable                  boolean  true      -       high    read-only     obeyed
background.threads                         int      10        >=1     high    cluster-wide  no-effect:scheduler
broker.id                                  int      -1        -       high    read-only     obeyed
broker.id.generation.enable                boolean  true      -       medium  read-only     obeyed
broker.rack                                string   -         -       medium  read-only     obeyed
controlled.shutdown.enable                 boolean  true      -       medium  read-only     obeyed
controlled.shutdown.max.retries            int      3         -       medium  read-only     obeyed
controlled.shutdown.retry.backoff.ms       long     5000      -       medium  read-only     obeyed
create.topic.policy.class.name             class    -         -       low     read-only     refused:java-class
default.replication.factor                 int      1         -       medium  read-only     obeyed
delete.topic.enable                        boolean  true      -       high    read-only     obeyed
early.start.listeners                      string   -         -       high    read-only     no-effect:authorizer
fetch.max.bytes                            int      57671680  >=1024  medium  read-only     obeyed
max.incremental.fetch.session.cache.slots  int      1000      >=0     medium  read-only     obeyed
max.request.partition.size.limit           int      2000      >=1     medium  read-only     no-effect:kraft
node.id                                    int      -1        -       high    read-only     obeyed
num.io.threads                             int      8         >=1     high    cluster-wide  obeyed
num.partitions                             int      1         >=1     medium  read-only     obeyed
num.recovery.threads.per.data.dir          int      1         >=1     high    cluster-wide  obeyed
request.timeout.ms                         int      30000     -       high    read-only     obeyed
reserved.broker.max.id                     int      1000      >=0     medium  read-only     obeyed
"""
