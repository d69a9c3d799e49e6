"""Quota windows, metrics and client telemetry."""

TABLE = """
alter.log.dirs.replication.quota.window.num           int      11       >=1  low  read-only
alter.log.dirs.replication.quota.window.size.seconds  int      1        >=1  low  read-only
auto.include.jmx.reporter                             boolean  true     -    low  read-only
client.quota.callback.class                           class    -        -    low  read-only
controller.quota.window.num                           int      11       >=1  low  read-only
controller.quota.window.size.seconds                  int      1        >=1  low  read-only
kafka.metrics.polling.interval.secs                   int      10       >=1  low  read-only
kafka.metrics.reporters                               list     ""       -    low  read-only
metric.reporters                                      list     ""       -    low  cluster-wide
metrics.num.samples                                   int      2        >=1  low  read-only
metrics.recording.level                               string   INFO     -    low  read-only
metrics.sample.window.ms                              long     30000    >=1  low  read-only
quota.window.num                                      int      11       >=1  low  read-only
quota.window.size.seconds                             int      1        >=1  low  read-only
replication.quota.window.num                          int      11       >=1  low  read-only
replication.quota.window.size.seconds                 int      1        >=1  low  read-only
telemetry.max.bytes                                   int      1048576  >=1  low  read-only
"""
