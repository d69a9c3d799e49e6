"""Odradek: a distributed commit log that speaks Apache Kafka's protocol, coordinated by Apache ZooKeeper."""

__version__ = "0.1.0"
