"""Tiered storage, which this broker doesn't have."""

TABLE = """
log.local.retention.bytes                           long     -2     >=-2       medium  cluster-wide  no-effect:tiered
log.local.retention.ms                              long     -2     >=-2       medium  cluster-wide  no-effect:tiered
remote.fetch.max.wait.ms                            int      500    >=1        medium  cluster-wide  no-effect:tiered
remote.log.index.file.cache.total.size.bytes  long
    1073741824  >=1  low  cluster-wide  no-effect:tiered
remote.log.manager.copier.thread.pool.size  int
    -1  1..2147483647|-1  medium  read-only  no-effect:tiered
remote.log.manager.copy.max.bytes.per.second  long
    9223372036854775807  >=1  medium  cluster-wide  no-effect:tiered
remote.log.manager.copy.quota.window.num            int      11     >=1        medium  read-only     no-effect:tiered
remote.log.manager.copy.quota.window.size.seconds   int      1      >=1        medium  read-only     no-effect:tiered
remote.log.manager.expiration.thread.pool.size  int
    -1  1..2147483647|-1  medium  read-only  no-effect:tiered
remote.log.manager.fetch.max.bytes.per.second  long
    9223372036854775807  >=1  medium  cluster-wide  no-effect:tiered
remote.log.manager.fetch.quota.window.num           int      11     >=1        medium  read-only     no-effect:tiered
remote.log.manager.fetch.quota.window.size.seconds  int      1      >=1        medium  read-only     no-effect:tiered
remote.log.manager.task.interval.ms                 long     30000  >=1        low     read-only     no-effect:tiered
remote.log.manager.thread.pool.size                 int      10     >=1        medium  read-only     no-effect:tiered
remote.log.metadata.custom.metadata.max.bytes       int      128    >=0        low     read-only     no-effect:tiered
remote.log.metadata.manager.class.name  string
    org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager
    non-empty  medium  read-only  no-effect:tiered
remote.log.metadata.manager.class.path              string   -      -          medium  read-only     no-effect:tiered
remote.log.metadata.manager.impl.prefix  string
    rlmm.config.  non-empty  medium  read-only  no-effect:tiered
remote.log.metadata.manager.listener.name           string   -      non-empty  medium  read-only     no-effect:tiered
remote.log.reader.max.pending.tasks                 int      100    >=1        medium  read-only     no-effect:tiered
remote.log.reader.threads                           int      10     >=1        medium  read-only     no-effect:tiered
remote.log.storage.manager.class.name               string   -      non-empty  medium  read-only     no-effect:tiered
remote.log.storage.manager.class.path               string   -      -          medium  read-only     no-effect:tiered
remote.log.storage.manager.impl.prefix  string
    rsm.config.  non-empty  medium  read-only  no-effect:tiered
remote.log.storage.system.enable                    boolean  false  -          medium  read-only     refused:tiered
"""
