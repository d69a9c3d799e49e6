"""The keys of a topic, and the broker keys that each one falls back to, the first that is set winning."""

TABLE = """
cleanup.policy                           list     delete      compact|delete  medium  cluster-wide  obeyed
compression.gzip.level                   int      -1          1..9|-1  medium  cluster-wide  obeyed
compression.lz4.level                    int      9           1..17    medium  cluster-wide  obeyed
compression.type  string
    producer  uncompressed|zstd|lz4|snappy|gzip|producer  medium  cluster-wide  obeyed
compression.zstd.level                   int      3           -131072..22  medium  cluster-wide  obeyed
delete.retention.ms                      long     86400000    >=0      medium  cluster-wide  obeyed
file.delete.delay.ms                     long     60000       >=0      medium  cluster-wide  obeyed
flush.messages                           long     9223372036854775807  >=1      medium  cluster-wide  obeyed
flush.ms                                 long     9223372036854775807  >=0      medium  cluster-wide  obeyed
follower.replication.throttled.replicas  list     ""          throttled-replicas  medium  cluster-wide  obeyed
index.interval.bytes                     int      4096        >=0      medium  cluster-wide  obeyed
leader.replication.throttled.replicas    list     ""          throttled-replicas  medium  cluster-wide  obeyed
local.retention.bytes                    long     -2          >=-2     medium  cluster-wide  no-effect:tiered
local.retention.ms                       long     -2          >=-2     medium  cluster-wide  no-effect:tiered
max.compaction.lag.ms                    long     9223372036854775807  >=1      medium  cluster-wide  obeyed
max.message.bytes                        int      1048588     >=0      medium  cluster-wide  obeyed
message.downconversion.enable            boolean  true        -        low     cluster-wide  obeyed
message.format.version                   string   3.0-IV1     version  medium  cluster-wide  no-effect:format
message.timestamp.after.max.ms           long     9223372036854775807  >=0      medium  cluster-wide  obeyed
message.timestamp.before.max.ms          long     9223372036854775807  >=0      medium  cluster-wide  obeyed
message.timestamp.difference.max.ms      long     9223372036854775807  >=0      medium  cluster-wide  obeyed
message.timestamp.type                   string   CreateTime  CreateTime|LogAppendTime  medium  cluster-wide  obeyed
min.cleanable.dirty.ratio                double   0.5         0..1     medium  cluster-wide  obeyed
min.compaction.lag.ms                    long     0           >=0      medium  cluster-wide  obeyed
min.insync.replicas                      int      1           >=1      medium  cluster-wide  obeyed
preallocate                              boolean  false       -        medium  cluster-wide  obeyed
remote.log.copy.disable                  boolean  false       -        medium  cluster-wide  refused:tiered
remote.log.delete.on.disable             boolean  false       -        medium  cluster-wide  refused:tiered
remote.storage.enable                    boolean  false       -        medium  cluster-wide  refused:tiered
retention.bytes                          long     -1          -        medium  cluster-wide  obeyed
retention.ms                             long     604800000   >=-1     medium  cluster-wide  obeyed
segment.bytes                            int      1073741824  >=14     medium  cluster-wide  obeyed
segment.index.bytes                      int      10485760    >=4      medium  cluster-wide  obeyed
segment.jitter.ms                        long     0           >=0      medium  cluster-wide  obeyed
segment.ms                               long     604800000   >=1      medium  cluster-wide  obeyed
unclean.leader.election.enable           boolean  false       -        medium  cluster-wide  obeyed
"""

# In Kafka's order of precedence. Hours and minutes are converted to milliseconds, see `topic_config.py`.
BROKER_SYNONYMS: dict[str, tuple[str, ...]] = {
    "cleanup.policy": ("log.cleanup.policy",),
    "compression.gzip.level": ("compression.gzip.level",),
    "compression.lz4.level": ("compression.lz4.level",),
    "compression.type": ("compression.type",),
    "compression.zstd.level": ("compression.zstd.level",),
    "delete.retention.ms": ("log.cleaner.delete.retention.ms",),
    "file.delete.delay.ms": ("log.segment.delete.delay.ms",),
    "flush.messages": ("log.flush.interval.messages",),
    "flush.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "index.interval.bytes": ("log.index.interval.bytes",),
    "local.retention.bytes": ("log.local.retention.bytes",),
    "local.retention.ms": ("log.local.retention.ms",),
    "max.compaction.lag.ms": ("log.cleaner.max.compaction.lag.ms",),
    "max.message.bytes": ("message.max.bytes",),
    "message.downconversion.enable": ("log.message.downconversion.enable",),
    "message.format.version": ("log.message.format.version",),
    "message.timestamp.after.max.ms": ("log.message.timestamp.after.max.ms",),
    "message.timestamp.before.max.ms": ("log.message.timestamp.before.max.ms",),
    "message.timestamp.difference.max.ms": ("log.message.timestamp.difference.max.ms",),
    "message.timestamp.type": ("log.message.timestamp.type",),
    "min.cleanable.dirty.ratio": ("log.cleaner.min.cleanable.ratio",),
    "min.compaction.lag.ms": ("log.cleaner.min.compaction.lag.ms",),
    "min.insync.replicas": ("min.insync.replicas",),
    "preallocate": ("log.preallocate",),
    "retention.bytes": ("log.retention.bytes",),
    "retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "segment.bytes": ("log.segment.bytes",),
    "segment.index.bytes": ("log.index.size.max.bytes",),
    "segment.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "segment.ms": ("log.roll.ms", "log.roll.hours"),
    "unclean.leader.election.enable": ("unclean.leader.election.enable",),
}
