"""Owner of a log directory and topic id of a partition's directory.

meta.properties      version=0, broker.id, cluster.id; further keys (Kafka's directory.id) are kept
partition.metadata   version: 0, topic_id: 22 characters of URL-safe base64
"""

from typing import Final
from uuid import UUID

from odradek.model.uuid_text import uuid_from_text, uuid_to_text

META_PROPERTIES: Final = "meta.properties"
PARTITION_METADATA: Final = "partition.metadata"

VERSION_KEY: Final = "version"
BROKER_ID_KEY: Final = "broker.id"
NODE_ID_KEY: Final = "node.id"
"""Key of Kafka brokers that run without ZooKeeper."""

CLUSTER_ID_KEY: Final = "cluster.id"


def partition_metadata_text(topic_id: UUID) -> str:
    return f"version: 0\ntopic_id: {uuid_to_text(topic_id)}"


def parse_topic_id(text: str) -> UUID:
    """Return the topic id of a partition.metadata; raise ValueError where there is none."""
    fields = dict(line.split(": ", 1) for line in text.splitlines() if line)
    if "topic_id" not in fields:
        raise ValueError("no topic_id")
    return uuid_from_text(fields["topic_id"])
