"""Processes on one machine: ZooKeeper and brokers that `odradek up` starts, Java, and links that can be cut."""
