"""The log on disk: segments, flushing, retention, compaction and limits of messages."""

TABLE = """
compression.gzip.level                         int      -1          1..9|-1  medium  cluster-wide  obeyed
compression.lz4.level                          int      9           1..17    medium  cluster-wide  obeyed
compression.type  string
    producer  uncompressed|zstd|lz4|snappy|gzip|producer  high  cluster-wide  obeyed
compression.zstd.level                         int      3           -131072..22  medium  cluster-wide  obeyed
log.cleaner.backoff.ms                         long     15000       >=0      medium  cluster-wide  obeyed
log.cleaner.dedupe.buffer.size                 long     134217728   -        medium  cluster-wide  obeyed
log.cleaner.delete.retention.ms                long     86400000    >=0      medium  cluster-wide  obeyed
log.cleaner.enable                             boolean  true        -        medium  read-only     obeyed
log.cleaner.io.buffer.load.factor              double   0.9         -        medium  cluster-wide  obeyed
log.cleaner.io.buffer.size                     int      524288      >=0      medium  cluster-wide  obeyed
log.cleaner.io.max.bytes.per.second            double   1.7976931348623157E308  -        medium  cluster-wide  obeyed
log.cleaner.max.compaction.lag.ms              long     9223372036854775807  >=1      medium  cluster-wide  obeyed
log.cleaner.min.cleanable.ratio                double   0.5         0..1     medium  cluster-wide  obeyed
log.cleaner.min.compaction.lag.ms              long     0           >=0      medium  cluster-wide  obeyed
log.cleaner.threads                            int      1           >=0      medium  cluster-wide  obeyed
log.cleanup.policy                             list     delete      compact|delete  medium  cluster-wide  obeyed
log.dir                                        string   /tmp/kafka-logs  -        high    read-only     obeyed
log.dirs                                       string   -           -        high    read-only     obeyed
log.flush.interval.messages                    long     9223372036854775807  >=1      high    cluster-wide  obeyed
log.flush.interval.ms                          long     -           -        high    cluster-wide  obeyed
log.flush.offset.checkpoint.interval.ms        int      60000       >=0      high    read-only     obeyed
log.flush.scheduler.interval.ms                long     9223372036854775807  -        high    read-only     obeyed
log.flush.start.offset.checkpoint.interval.ms  int      60000       >=0      high    read-only     obeyed
log.index.interval.bytes                       int      4096        >=0      medium  cluster-wide  obeyed
log.index.size.max.bytes                       int      10485760    >=4      medium  cluster-wide  obeyed
log.message.downconversion.enable              boolean  true        -        low     cluster-wide  obeyed
log.message.format.version                     string   3.0-IV1     version  medium  read-only     no-effect:format
log.message.timestamp.after.max.ms             long     9223372036854775807  >=0      medium  cluster-wide  obeyed
log.message.timestamp.before.max.ms            long     9223372036854775807  >=0      medium  cluster-wide  obeyed
log.message.timestamp.difference.max.ms        long     9223372036854775807  >=0      medium  cluster-wide  obeyed
log.message.timestamp.type  string
    CreateTime  CreateTime|LogAppendTime  medium  cluster-wide  obeyed
log.preallocate                                boolean  false       -        medium  cluster-wide  obeyed
log.retention.bytes                            long     -1          -        high    cluster-wide  obeyed
log.retention.check.interval.ms                long     300000      >=1      medium  read-only     obeyed
log.retention.hours                            int      168         -        high    read-only     obeyed
log.retention.minutes                          int      -           -        high    read-only     obeyed
log.retention.ms                               long     -           -        high    cluster-wide  obeyed
log.roll.hours                                 int      168         >=1      high    read-only     obeyed
log.roll.jitter.hours                          int      0           >=0      high    read-only     obeyed
log.roll.jitter.ms                             long     -           -        high    cluster-wide  obeyed
log.roll.ms                                    long     -           -        high    cluster-wide  obeyed
log.segment.bytes                              int      1073741824  >=14     high    cluster-wide  obeyed
log.segment.delete.delay.ms                    long     60000       >=0      high    cluster-wide  obeyed
message.max.bytes                              int      1048588     >=0      high    cluster-wide  obeyed
min.insync.replicas                            int      1           >=1      high    cluster-wide  obeyed
"""
