"""Administration on every broker: topics, partitions, configs and producer ids written to ZooKeeper for the
controller to see.
"""
