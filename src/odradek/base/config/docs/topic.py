"""Documentation of the keys of a topic."""

TEXT = """
cleanup.policy
    What happens to old segments: delete removes them by age and size, compact keeps the last record of each key;
    both can be combined.
compression.gzip.level
    How hard gzip works when compression.type is gzip.
compression.lz4.level
    How hard lz4 works when compression.type is lz4.
compression.type
    How records are stored: producer leaves each batch as it came, uncompressed or a codec's name stores them that way.
compression.zstd.level
    How hard zstd works when compression.type is zstd.
delete.retention.ms
    How long a tombstone stays after compaction, which is how long a reader may take from the start to see it.
file.delete.delay.ms
    How long a deleted file stays, renamed, for fetches that still read it.
flush.messages
    After how many messages the log is forced to disk: 1 is after each batch. Normally left to the operating system.
flush.ms
    After how long the log is forced to disk. Normally left to the operating system.
follower.replication.throttled.replicas
    Replicas whose catching up is throttled on the follower's side, as partition:broker pairs, or * for all.
index.interval.bytes
    About how many bytes lie between two index entries. Fewer find an offset faster and make larger indexes.
leader.replication.throttled.replicas
    Replicas whose catching up is throttled on the leader's side, as partition:broker pairs, or * for all.
local.retention.bytes
    How much stays on local disk with tiered storage.
local.retention.ms
    How long segments stay on local disk with tiered storage.
max.compaction.lag.ms
    The longest that a record may wait before compaction may remove it. Only for compacted topics.
max.message.bytes
    The largest batch that the topic accepts, after compression. Consumers read larger batches than they ask for.
message.downconversion.enable
    Whether consumers that only know older message formats get them converted. Otherwise they are refused.
message.format.version
    The message format of older releases.
message.timestamp.after.max.ms
    How far ahead of the broker's clock a record's timestamp may be, if producers set it.
message.timestamp.before.max.ms
    How far behind the broker's clock a record's timestamp may be, if producers set it.
message.timestamp.difference.max.ms
    The older single limit for both directions, which counts where the newer two are left open.
message.timestamp.type
    CreateTime keeps the producer's timestamp, LogAppendTime puts the broker's in its place.
min.cleanable.dirty.ratio
    The part of the log that must be uncompacted before it is compacted. Less wastes less disk and works more.
min.compaction.lag.ms
    How long a record is safe from compaction after it was written.
min.insync.replicas
    How many replicas must have a record before acks=all is answered. With fewer in sync such writes are refused.
preallocate
    Whether the whole space of a new segment is reserved at once.
remote.log.copy.disable
    Whether tiered storage stops taking new segments.
remote.log.delete.on.disable
    Whether turning tiered storage off deletes what it holds.
remote.storage.enable
    Whether the topic uses tiered storage.
retention.bytes
    How large a partition may become before its oldest segments are deleted; -1 is without limit.
retention.ms
    How long segments are kept before they are deleted, counted from their newest record; -1 keeps them forever.
segment.bytes
    The size at which a segment is closed. Retention and compaction work on closed segments only.
segment.index.bytes
    The largest size of a segment's indexes. A full index closes the segment.
segment.jitter.ms
    The most by which a roll by age is brought forward at random, so that segments don't all roll together.
segment.ms
    The age at which a segment is closed even if it isn't full, so that retention and compaction can take it.
unclean.leader.election.enable
    Whether a replica that isn't in sync may lead when no other can: the partition is back, some records may be lost.
"""
