"""Processes of one machine: ZooKeeper and brokers that `odradek up` starts, Java, links that can be cut."""
