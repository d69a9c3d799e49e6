"""The laboratory's network: a relay between local brokers, and between them and ZooKeeper, that can cut connections.

`plan` assigns the ports, `cuts` holds the cuts, `relay` forwards the bytes in a separate process (`python -m
odradek.local.links DIR`), `local_links` has the operations of the command line and the console. Without `--lab` none
of it runs.
"""
