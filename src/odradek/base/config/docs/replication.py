"""Documentation of followers, leaders and the controller."""

TEXT = """
auto.leader.rebalance.enable
    Whether leadership goes back to the preferred replicas by itself when it has drifted too far.
controller.socket.timeout.ms
    How long the controller waits for a broker's answer before it connects anew.
delete.records.purgatory.purge.interval.requests
    After how many finished DeleteRecords requests their leftovers are swept out of memory.
fetch.purgatory.purge.interval.requests
    After how many finished fetches their leftovers are swept out of memory.
inter.broker.protocol.version
    The release whose language brokers speak among themselves; lower it while a cluster is upgraded.
leader.imbalance.check.interval.seconds
    How often the controller looks whether leadership has drifted.
leader.imbalance.per.broker.percentage
    The share of a broker's partitions that may be led by others than preferred, in percent, before it is set right.
num.replica.alter.log.dirs.threads
    Threads that move replicas between log directories; by default one for each directory.
num.replica.fetchers
    Connections over which this broker follows each other broker. More catch up faster and cost more.
producer.purgatory.purge.interval.requests
    After how many finished produce requests their leftovers are swept out of memory.
replica.fetch.backoff.ms
    How long a follower rests a partition after an error.
replica.fetch.max.bytes
    How many bytes a follower asks for each partition. A larger first batch is still sent whole.
replica.fetch.min.bytes
    How much must be there before a follower is answered; otherwise it waits replica.fetch.wait.max.ms.
replica.fetch.response.max.bytes
    How many bytes a follower asks for in all. A larger first batch is still sent whole.
replica.fetch.wait.max.ms
    The longest that a leader holds a follower's fetch back for more data. Must stay below replica.lag.time.max.ms.
replica.high.watermark.checkpoint.interval.ms
    How often the high watermarks are written to disk.
replica.lag.time.max.ms
    A follower that hasn't been at the leader's end for this long drops out of the in-sync replicas.
replica.selector.class
    How the replica is chosen that a consumer reads from. Of Java classes, Kafka's own two are known by name.
replica.socket.receive.buffer.bytes
    SO_RCVBUF of the connections over which this broker follows others; -1 leaves it to the kernel.
replica.socket.timeout.ms
    How long a follower waits for a leader's answer. Must be at least replica.fetch.wait.max.ms.
unclean.leader.election.enable
    Whether a replica that isn't in sync may lead when no other can: the partition is back, some records may be lost.
"""
