"""Metadata of the cluster as one broker knows it: an immutable image that is replaced as a whole.

A reader takes `cache.image` once and works on it without a lock; a writer builds the next image and publishes it. Only
the handler of UpdateMetadata does, which the controller's requests reach one at a time.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from uuid import UUID

from odradek.base.value_classes import dataclass
from odradek.model.topology import ZERO_UUID, Broker, Endpoint, TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionImage:
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()
    """Replicas on dead brokers or in failed directories, as in the controller's UpdateMetadata."""


@dataclass(frozen=True, slots=True)
class TopicImage:
    name: str
    id: UUID
    partitions: Mapping[int, PartitionImage]


@dataclass(frozen=True, slots=True)
class TopicUpdate:
    """News of a topic: partitions that changed, None for one that is being deleted. The others stay as they are."""

    name: str
    id: UUID
    partitions: Mapping[int, PartitionImage | None]


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

    def updated(
        self, controller_id: int, brokers: Mapping[int, Broker], news: Iterable[TopicUpdate], *, is_full: bool = False
    ) -> "MetadataImage":
        """The image after an update: all live brokers anew, and the partitions that the update names.

        A full update names all partitions of the cluster: others are gone.
        """
        topics, names = ({}, {}) if is_full else (dict(self.topics), dict(self.topic_names))
        for update in news:
            known = topics.pop(update.name, None)
            if known is not None:
                names.pop(known.id, None)
            partitions = _merged(known, update)
            if partitions:
                topic_id = update.id if update.id != ZERO_UUID or known is None else known.id
                topics[update.name] = TopicImage(update.name, topic_id, partitions)
                names[topic_id] = update.name
        names.pop(ZERO_UUID, None)
        return replace(self, controller_id=controller_id, brokers=dict(brokers), topics=topics, topic_names=names)

    def deleted_since(self, before: "MetadataImage") -> list[str]:
        """Names of deleted topics, including topics that were created again since."""
        return [
            name
            for name, topic in before.topics.items()
            if (now := self.topics.get(name)) is not topic and (now is None or _are_different(topic.id, now.id))
        ]


def _are_different(one: UUID, other: UUID) -> bool:
    return ZERO_UUID not in (one, other) and one != other


def _merged(known: TopicImage | None, update: TopicUpdate) -> dict[int, PartitionImage]:
    merged = dict(known.partitions) if known is not None and not _are_different(known.id, update.id) else {}
    for number, partition in update.partitions.items():
        if partition is None:
            merged.pop(number, None)
        else:
            merged[number] = partition
    return dict(sorted(merged.items()))


class MetadataCache:
    """The current image. Reading `image` is atomic; only the owner of the control path publishes the next one."""

    def __init__(self, image: MetadataImage | None = None) -> None:
        self.image = image or MetadataImage()
        self.on_publish: list[Callable[[MetadataImage], None]] = []
        """Listeners, called with every published image on the thread that published it; they must not block."""

    def publish(self, image: MetadataImage) -> None:
        self.image = image
        for listener in self.on_publish:
            listener(image)
