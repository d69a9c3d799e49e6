"""The simulator: runs a cluster in one thread; a seed determines everything that happens.

It runs the broker's own code, and simulates time, network, ZooKeeper, clients and disk failures.
"""
