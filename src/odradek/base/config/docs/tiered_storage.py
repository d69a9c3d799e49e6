"""Documentation of tiered storage."""

TEXT = """
log.local.retention.bytes
    Tiered storage: how much of a partition stays on local disk; -2 follows the topic's retention.
log.local.retention.ms
    Tiered storage: how long segments stay on local disk; -2 follows the topic's retention.
remote.fetch.max.wait.ms
    Tiered storage: how long a fetch may wait for remote data.
remote.log.index.file.cache.total.size.bytes
    Tiered storage: local disk for indexes of remote segments.
remote.log.manager.copier.thread.pool.size
    Tiered storage: threads that copy segments away; -1 follows remote.log.manager.thread.pool.size.
remote.log.manager.copy.max.bytes.per.second
    Tiered storage: the most bytes copied away each second.
remote.log.manager.copy.quota.window.num
    Tiered storage: windows in which copying is measured.
remote.log.manager.copy.quota.window.size.seconds
    Tiered storage: the length of such a window.
remote.log.manager.expiration.thread.pool.size
    Tiered storage: threads that delete remote segments; -1 follows remote.log.manager.thread.pool.size.
remote.log.manager.fetch.max.bytes.per.second
    Tiered storage: the most bytes fetched back each second.
remote.log.manager.fetch.quota.window.num
    Tiered storage: windows in which fetching is measured.
remote.log.manager.fetch.quota.window.size.seconds
    Tiered storage: the length of such a window.
remote.log.manager.task.interval.ms
    Tiered storage: how often segments are looked at.
remote.log.manager.thread.pool.size
    Tiered storage: threads for its tasks.
remote.log.metadata.custom.metadata.max.bytes
    Tiered storage: how much a storage plug-in may note about a segment.
remote.log.metadata.manager.class.name
    Tiered storage: the Java class that keeps its metadata.
remote.log.metadata.manager.class.path
    Tiered storage: where that class is found.
remote.log.metadata.manager.impl.prefix
    Tiered storage: the prefix of that class's own settings.
remote.log.metadata.manager.listener.name
    Tiered storage: the listener by which that class reaches the brokers.
remote.log.reader.max.pending.tasks
    Tiered storage: how many remote reads may wait.
remote.log.reader.threads
    Tiered storage: threads for remote reads.
remote.log.storage.manager.class.name
    Tiered storage: the Java class that stores segments.
remote.log.storage.manager.class.path
    Tiered storage: where that class is found.
remote.log.storage.manager.impl.prefix
    Tiered storage: the prefix of that class's own settings.
remote.log.storage.system.enable
    Tiered storage: whether there is any.
"""
