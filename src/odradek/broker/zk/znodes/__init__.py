"""Declarations of all znodes: path, encoding and decoding of each.

The content is Apache Kafka 3.9's, key order included, so that brokers and tools of both kinds share one tree.
Reading accepts the older versions that a long-lived tree may hold. Pure functions over bytes; `store` and
`registration` perform the reads and writes.
"""

from odradek.broker.zk.znodes.brokers import BrokerIds, BrokerRegistration, BrokerSequence, endpoint_text
from odradek.broker.zk.znodes.cluster import ClusterId, Controller, ControllerEpoch, ProducerIdBlock, ProducerIds
from odradek.broker.zk.znodes.configs import CONFIG_TYPES, DEFAULT_ENTITY, EntityConfig
from odradek.broker.zk.znodes.consumers import ConsumerOffset
from odradek.broker.zk.znodes.notices import ConfigChanges, IsrChanges, LogDirFailures
from odradek.broker.zk.znodes.reading import CorruptZnode
from odradek.broker.zk.znodes.requests import DeletedTopic, PreferredElection, Reassignments
from odradek.broker.zk.znodes.topics import Partitions, PartitionState, Topic, Topics

__all__ = [
    "CONFIG_TYPES",
    "DEFAULT_ENTITY",
    "PERSISTENT_ROOTS",
    "BrokerIds",
    "BrokerRegistration",
    "BrokerSequence",
    "ClusterId",
    "ConfigChanges",
    "ConsumerOffset",
    "Controller",
    "ControllerEpoch",
    "CorruptZnode",
    "DeletedTopic",
    "EntityConfig",
    "IsrChanges",
    "LogDirFailures",
    "PartitionState",
    "Partitions",
    "PreferredElection",
    "ProducerIdBlock",
    "ProducerIds",
    "Reassignments",
    "Topic",
    "Topics",
    "endpoint_text",
]

PERSISTENT_ROOTS = (
    "/consumers",
    BrokerIds.path,
    Topics.path,
    ConfigChanges.path,
    DeletedTopic.parent,
    BrokerSequence.path,
    IsrChanges.path,
    ProducerIdBlock.path,
    LogDirFailures.path,
    *(EntityConfig.parent(entity_type) for entity_type in CONFIG_TYPES),
)
