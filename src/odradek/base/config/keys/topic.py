"""The keys of a topic, and the broker keys that each one falls back to, the first that is set winning."""

TABLE = """
cleanup.policy                           list     delete               compact|delete  medium  cluster-wide
compression.gzip.level                   int      -1                   1..9|-1       medium  cluster-wide
compression.lz4.level                    int      9                    1..17         medium  cluster-wide
compression.type  string
    producer  uncompressed|zstd|lz4|snappy|gzip|producer  medium  cluster-wide
compression.zstd.level                   int      3                    -131072..22   medium  cluster-wide
delete.retention.ms                      long     86400000             >=0           medium  cluster-wide
file.delete.delay.ms                     long     60000                >=0           medium  cluster-wide
flush.messages                           long     9223372036854775807  >=1           medium  cluster-wide
flush.ms                                 long     9223372036854775807  >=0           medium  cluster-wide
follower.replication.throttled.replicas  list     ""                   throttled-replicas  medium  cluster-wide
index.interval.bytes                     int      4096                 >=0           medium  cluster-wide
leader.replication.throttled.replicas    list     ""                   throttled-replicas  medium  cluster-wide
local.retention.bytes                    long     -2                   >=-2          medium  cluster-wide
local.retention.ms                       long     -2                   >=-2          medium  cluster-wide
max.compaction.lag.ms                    long     9223372036854775807  >=1           medium  cluster-wide
max.message.bytes                        int      1048588              >=0           medium  cluster-wide
message.downconversion.enable            boolean  true                 -             low     cluster-wide
message.format.version                   string   3.0-IV1              version       medium  cluster-wide
message.timestamp.after.max.ms           long     9223372036854775807  >=0           medium  cluster-wide
message.timestamp.before.max.ms          long     9223372036854775807  >=0           medium  cluster-wide
message.timestamp.difference.max.ms      long     9223372036854775807  >=0           medium  cluster-wide
message.timestamp.type                   string   CreateTime           CreateTime|LogAppendTime  medium  cluster-wide
min.cleanable.dirty.ratio                double   0.5                  0..1          medium  cluster-wide
min.compaction.lag.ms                    long     0                    >=0           medium  cluster-wide
min.insync.replicas                      int      1                    >=1           medium  cluster-wide
preallocate                              boolean  false                -             medium  cluster-wide
remote.log.copy.disable                  boolean  false                -             medium  cluster-wide
remote.log.delete.on.disable             boolean  false                -             medium  cluster-wide
remote.storage.enable                    boolean  false                -             medium  cluster-wide
retention.bytes                          long     -1                   -             medium  cluster-wide
retention.ms                             long     604800000            >=-1          medium  cluster-wide
segment.bytes                            int      1073741824           >=14          medium  cluster-wide
segment.index.bytes                      int      10485760             >=4           medium  cluster-wide
segment.jitter.ms                        long     0                    >=0           medium  cluster-wide
segment.ms                               long     604800000            >=1           medium  cluster-wide
unclean.leader.election.enable           boolean  false                -             medium  cluster-wide
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
