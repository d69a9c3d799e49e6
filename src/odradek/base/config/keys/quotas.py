"""Quota windows, metrics and client telemetry."""

TABLE = """
alter.log.dirs.replication.quota.window.num           int      11       >=1  low     read-only     obeyed
alter.log.dirs.replication.quota.window.size.seconds  int      1        >=1  low     read-only     obeyed
auto.include.jmx.reporter                             boolean  true     -    low     read-only     no-effect:jmx
client.quota.callback.class                           class    -        -    low     read-only     refused:java-class
controller.quota.window.num                           int      11       >=1  low     read-only     obeyed
controller.quota.window.size.seconds                  int      1        >=1  low     read-only     obeyed
kafka.metrics.polling.interval.secs                   int      10       >=1  low     read-only     no-effect:reporters
kafka.metrics.reporters                               list     ""       -    low     read-only     refused:reporters
metric.reporters                                      list     ""       -    low     cluster-wide  refused:reporters
metrics.num.samples                                   int      2        >=1  low     read-only     no-effect:samples
metrics.recording.level                               string   INFO     -    low     read-only     no-effect:samples
metrics.sample.window.ms                              long     30000    >=1  low     read-only     no-effect:samples
quota.window.num                                      int      11       >=1  low     read-only     obeyed
quota.window.size.seconds                             int      1        >=1  low     read-only     obeyed
replication.quota.window.num                          int      11       >=1  low     read-only     obeyed
replication.quota.window.size.seconds                 int      1        >=1  low     read-only     obeyed
telemetry.max.bytes                                   int      1048576  >=1  low     read-only     no-effect:kraft
"""
