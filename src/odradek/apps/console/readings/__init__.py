"""Readings of the cluster for the screens: over the protocol, from metrics, from ZooKeeper, from journals."""
