"""Administration on every broker: writes topics, partitions, configs and producer ids to ZooKeeper, where the
controller reads them.
"""
