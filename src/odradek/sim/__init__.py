"""The simulator: a cluster in one thread, drawn from a seed.

The broker's own code runs in it; time, network, ZooKeeper, clients and the failures of disks are simulated.
"""
