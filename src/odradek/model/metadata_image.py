"""What a broker knows of its cluster: an immutable image that is swapped whole.

A reader takes `cache.image` once and works on it without a lock; a writer builds the next image and assigns it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from odradek.model.topology import Broker, Endpoint, TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionImage:
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicImage:
    name: str
    id: UUID
    partitions: Mapping[int, PartitionImage]


@dataclass(frozen=True, slots=True)
class MetadataImage:
    cluster_id: str = ""
    controller_id: int = -1
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topic_names: Mapping[UUID, str] = field(default_factory=dict)

    def partition(self, tp: TopicPartition) -> PartitionImage | None:
        topic = self.topics.get(tp.topic)
        return topic.partitions.get(tp.partition) if topic else None

    def reached_by(self, listener: str) -> list[tuple[Broker, Endpoint]]:
        """The brokers that a client can reach through the listener by which it came, and where."""
        endpoints = ((broker, broker.endpoint(listener)) for broker in self.brokers.values())
        return [(broker, endpoint) for broker, endpoint in endpoints if endpoint is not None]

    def with_topics(self, changed: Iterable[TopicImage]) -> "MetadataImage":
        topics, names = dict(self.topics), dict(self.topic_names)
        for topic in changed:
            topics[topic.name] = topic
            names[topic.id] = topic.name
        return replace(self, topics=topics, topic_names=names)

    def without_topics(self, gone: Iterable[str]) -> "MetadataImage":
        topics, names = dict(self.topics), dict(self.topic_names)
        for name in gone:
            if (topic := topics.pop(name, None)) is not None:
                names.pop(topic.id, None)
        return replace(self, topics=topics, topic_names=names)


class MetadataCache:
    """The current image. Reading `image` is atomic; only the owner of the control path assigns it."""

    def __init__(self, image: MetadataImage | None = None) -> None:
        self.image = image or MetadataImage()
