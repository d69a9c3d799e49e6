"""The laboratory's network: brokers of one machine that reach ZooKeeper and each other through a relay that can be cut.

`plan` says who listens where, `cuts` what is cut, `relay` carries the bytes in a process of its own (`python -m
odradek.local.links DIR`), `local_links` is what the command line and the console do with it. Without `--lab` none of
it runs.
"""
