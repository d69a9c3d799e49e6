"""The log on disk: segments, flushing, retention, compaction and what a message may be."""

TABLE = """
compression.gzip.level                         int      -1                   1..9|-1       medium  cluster-wide
compression.lz4.level                          int      9                    1..17         medium  cluster-wide
compression.type  string
    producer  uncompressed|zstd|lz4|snappy|gzip|producer  high  cluster-wide
compression.zstd.level                         int      3                    -131072..22   medium  cluster-wide
log.cleaner.backoff.ms                         long     15000                >=0           medium  cluster-wide
log.cleaner.dedupe.buffer.size                 long     134217728            -             medium  cluster-wide
log.cleaner.delete.retention.ms                long     86400000             >=0           medium  cluster-wide
log.cleaner.enable                             boolean  true                 -             medium  read-only
log.cleaner.io.buffer.load.factor              double   0.9                  -             medium  cluster-wide
log.cleaner.io.buffer.size                     int      524288               >=0           medium  cluster-wide
log.cleaner.io.max.bytes.per.second            double   1.7976931348623157E308  -             medium  cluster-wide
log.cleaner.max.compaction.lag.ms              long     9223372036854775807  >=1           medium  cluster-wide
log.cleaner.min.cleanable.ratio                double   0.5                  0..1          medium  cluster-wide
log.cleaner.min.compaction.lag.ms              long     0                    >=0           medium  cluster-wide
log.cleaner.threads                            int      1                    >=0           medium  cluster-wide
log.cleanup.policy                             list     delete               compact|delete  medium  cluster-wide
log.dir                                        string   /tmp/kafka-logs      -             high    read-only
log.dirs                                       string   -                    -             high    read-only
log.flush.interval.messages                    long     9223372036854775807  >=1           high    cluster-wide
log.flush.interval.ms                          long     -                    -             high    cluster-wide
log.flush.offset.checkpoint.interval.ms        int      60000                >=0           high    read-only
log.flush.scheduler.interval.ms                long     9223372036854775807  -             high    read-only
log.flush.start.offset.checkpoint.interval.ms  int      60000                >=0           high    read-only
log.index.interval.bytes                       int      4096                 >=0           medium  cluster-wide
log.index.size.max.bytes                       int      10485760             >=4           medium  cluster-wide
log.message.downconversion.enable              boolean  true                 -             low     cluster-wide
log.message.format.version                     string   3.0-IV1              version       medium  read-only
log.message.timestamp.after.max.ms             long     9223372036854775807  >=0           medium  cluster-wide
log.message.timestamp.before.max.ms            long     9223372036854775807  >=0           medium  cluster-wide
log.message.timestamp.difference.max.ms        long     9223372036854775807  >=0           medium  cluster-wide
log.message.timestamp.type  string
    CreateTime  CreateTime|LogAppendTime  medium  cluster-wide
log.preallocate                                boolean  false                -             medium  cluster-wide
log.retention.bytes                            long     -1                   -             high    cluster-wide
log.retention.check.interval.ms                long     300000               >=1           medium  read-only
log.retention.hours                            int      168                  -             high    read-only
log.retention.minutes                          int      -                    -             high    read-only
log.retention.ms                               long     -                    -             high    cluster-wide
log.roll.hours                                 int      168                  >=1           high    read-only
log.roll.jitter.hours                          int      0                    >=0           high    read-only
log.roll.jitter.ms                             long     -                    -             high    cluster-wide
log.roll.ms                                    long     -                    -             high    cluster-wide
log.segment.bytes                              int      1073741824           >=14          high    cluster-wide
log.segment.delete.delay.ms                    long     60000                >=0           high    cluster-wide
message.max.bytes                              int      1048588              >=0           high    cluster-wide
min.insync.replicas                            int      1                    >=1           high    cluster-wide
"""
