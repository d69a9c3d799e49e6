"""Documentation of the log on disk."""

TEXT = """
compression.gzip.level
    How hard gzip works where the broker itself compresses; -1 is the library's own choice.
compression.lz4.level
    How hard lz4 works where the broker itself compresses.
compression.type
    How topics are stored: as their producers compressed them, or compressed anew by one of the named codecs.
compression.zstd.level
    How hard zstd works where the broker itself compresses.
log.cleaner.backoff.ms
    How long the cleaner sleeps when there is nothing to compact.
log.cleaner.dedupe.buffer.size
    Memory for the tables of keys, shared by all cleaner threads. Each thread needs more than a mebibyte.
log.cleaner.delete.retention.ms
    How long a tombstone stays in a compacted topic, so that readers that began before it still see it.
log.cleaner.enable
    Whether compaction runs at all. Without it topics with cleanup.policy=compact only grow.
log.cleaner.io.buffer.load.factor
    How full the table of keys may get. Fuller means more keys at a time, and more collisions.
log.cleaner.io.buffer.size
    Memory for reading and writing while compacting, shared by all cleaner threads.
log.cleaner.io.max.bytes.per.second
    The most that cleaner threads read and write each second, taken together.
log.cleaner.max.compaction.lag.ms
    The longest that a record may wait before compaction may remove it, however clean the log is.
log.cleaner.min.cleanable.ratio
    The part of a log that must be uncompacted before it is worth a pass.
log.cleaner.min.compaction.lag.ms
    How long a record is safe from compaction after it was written.
log.cleaner.threads
    How many logs are compacted at the same time.
log.cleanup.policy
    What happens to old segments unless the topic says otherwise: delete by age and size, compact by key, or both.
log.dir
    The one directory for logs, used where log.dirs isn't set.
log.dirs
    The directories for logs, separated by commas, best one for each disk. A new partition goes to the emptiest.
log.flush.interval.messages
    After how many messages a partition is forced to disk. Replication, not fsync, is what protects by default.
log.flush.interval.ms
    How long messages may stay in memory before a flush; log.flush.scheduler.interval.ms where it isn't set.
log.flush.offset.checkpoint.interval.ms
    How often the point up to which logs are safely on disk is written down. Recovery begins there.
log.flush.scheduler.interval.ms
    How often it is checked whether a log is due for a flush by time.
log.flush.start.offset.checkpoint.interval.ms
    How often the first readable offset of each log is written down, so that deleted records don't come back.
log.index.interval.bytes
    About how many bytes of log lie between two entries of the offset index.
log.index.size.max.bytes
    The largest size of an offset or time index. A full index rolls its segment.
log.message.downconversion.enable
    Whether consumers that only know older message formats get them converted. Otherwise they are refused.
log.message.format.version
    The message format of older releases. Format 2 is written whatever this says.
log.message.timestamp.after.max.ms
    How far ahead of the broker's clock a producer's timestamp may be. Only for CreateTime.
log.message.timestamp.before.max.ms
    How far behind the broker's clock a producer's timestamp may be. Only for CreateTime.
log.message.timestamp.difference.max.ms
    The older single limit for both directions, which counts where the newer two are left open.
log.message.timestamp.type
    Whether a record's time is the one that the producer gave it, or the one at which it was appended.
log.preallocate
    Whether the whole space of a new segment is reserved at once.
log.retention.bytes
    How large a partition may become before its oldest segments go; -1 is without limit. It counts per partition.
log.retention.check.interval.ms
    How often segments are looked at for deletion.
log.retention.hours
    How long segments are kept, in hours; the last resort after log.retention.minutes and log.retention.ms.
log.retention.minutes
    How long segments are kept, in minutes. Gives way to log.retention.ms.
log.retention.ms
    How long segments are kept, in milliseconds; -1 keeps them forever. Comes before the coarser units.
log.roll.hours
    The age at which a segment is closed even if it isn't full, in hours. Gives way to log.roll.ms.
log.roll.jitter.hours
    The most by which rolling is brought forward at random, in hours, so that segments don't all roll together.
log.roll.jitter.ms
    The most by which rolling is brought forward at random, in milliseconds.
log.roll.ms
    The age at which a segment is closed even if it isn't full, in milliseconds.
log.segment.bytes
    The size at which a segment is closed and the next one begun.
log.segment.delete.delay.ms
    How long a deleted segment's files stay, renamed, for fetches that still read them.
message.max.bytes
    The largest batch that is accepted, after compression. Topics can have their own limit.
min.insync.replicas
    How many replicas must have a record before acks=all is answered. With fewer in sync such writes are refused.
"""
