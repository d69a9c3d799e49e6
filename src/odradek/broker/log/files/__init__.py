"""Files of one partition's log: segments, indexes, snapshots, checkpoints, recovery; `partition_log` combines them."""
