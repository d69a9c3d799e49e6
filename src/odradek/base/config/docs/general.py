"""Documentation of the broker itself, its topics, quotas and metrics."""

TEXT = """
alter.config.policy.class.name
    A Java class that may refuse configuration changes.
alter.log.dirs.replication.quota.window.num
    How many windows of traffic are remembered when copying between log directories is throttled.
alter.log.dirs.replication.quota.window.size.seconds
    The length of one such window for copies between log directories.
auto.create.topics.enable
    Whether asking for a topic that isn't there creates it, with num.partitions and default.replication.factor.
auto.include.jmx.reporter
    Whether metrics are reported through Java's JMX.
background.threads
    Threads for chores such as retention and flushing.
broker.id
    The number by which the cluster knows this broker; -1 lets ZooKeeper give out one above reserved.broker.max.id.
broker.id.generation.enable
    Whether a broker without broker.id may have one generated. If so, a configured id may not exceed
    reserved.broker.max.id.
broker.rack
    Where the broker stands. Replicas of a partition are spread over racks, and consumers can read from their own.
client.quota.callback.class
    A Java class that decides about quotas.
controlled.shutdown.enable
    Whether a stopping broker first hands the partitions that it leads to others.
controlled.shutdown.max.retries
    How often the hand-over is tried before the broker stops without it.
controlled.shutdown.retry.backoff.ms
    The pause between two such tries, in which the cluster can recover.
controller.quota.window.num
    How many windows count when the rate of topic creations and deletions is measured.
controller.quota.window.size.seconds
    The length of one window of that measurement.
create.topic.policy.class.name
    A Java class that may refuse new topics.
default.replication.factor
    How many replicas a partition gets when a topic is created without saying so, by itself or with -1.
delete.topic.enable
    Whether topics may be deleted. Otherwise a deletion is refused.
early.start.listeners
    Listeners that open before the authorizer is ready. Each must be one of listeners.
fetch.max.bytes
    The most bytes that one fetch answer carries, even where the consumer asks for more. A first batch that is larger
    is still sent whole.
kafka.metrics.polling.interval.secs
    How often Java reporters read the metrics.
kafka.metrics.reporters
    Java classes that report the broker's metrics elsewhere.
max.incremental.fetch.session.cache.slots
    How many incremental fetch sessions are kept at once. A consumer without one sends its whole list each time.
max.request.partition.size.limit
    The most partitions that one DescribeTopicPartitions answer may list.
metric.reporters
    Java classes that report metrics of the kind that clients have.
metrics.num.samples
    How many samples a measured rate is averaged over.
metrics.recording.level
    How much detail is measured: INFO, DEBUG or TRACE.
metrics.sample.window.ms
    How long one sample of a measured rate covers.
node.id
    Another name for broker.id, from KRaft mode. Where both are set they must be equal.
num.io.threads
    Threads for requests that may wait for the disk or for ZooKeeper. Others are served by the thread that read them.
num.partitions
    How many partitions a topic gets when it is created without saying so.
num.recovery.threads.per.data.dir
    Threads for each log directory that open logs at start and flush them at stop.
quota.window.num
    How many windows of traffic count when a client's rate is held against its quota.
quota.window.size.seconds
    The length of one window of that measurement.
replication.quota.window.num
    How many windows of traffic count when replication is throttled.
replication.quota.window.size.seconds
    The length of one window of replication traffic.
request.timeout.ms
    How long this broker waits for an answer when it is the one that asks.
reserved.broker.max.id
    The largest id that may be configured; generated ones begin above it.
telemetry.max.bytes
    The most bytes of metrics that one client may push at a time.
"""
