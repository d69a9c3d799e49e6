"""One topic closely: where each replica's log begins and ends."""

from collections.abc import Mapping
from dataclasses import dataclass

from odradek.apps.console.readings.offsets import high_watermarks, offsets_of_replicas
from odradek.client.cluster_client import ClusterClient, TopicState
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.list_offsets import EARLIEST, LATEST


@dataclass(frozen=True, slots=True)
class ReplicaOffsets:
    start: int | None
    end: int | None
    """None: the broker doesn't answer."""


@dataclass(frozen=True, slots=True)
class TopicDetail:
    topic: TopicState
    high_watermarks: Mapping[int, int]
    replicas: Mapping[tuple[int, int], ReplicaOffsets]
    """By partition and broker."""


def read_topic(client: ClusterClient, before: TopicDetail | None, name: str) -> TopicDetail:
    topic = client.topic(name)
    live = client.brokers()
    starts: dict[tuple[int, int], int] = {}
    ends: dict[tuple[int, int], int] = {}
    for broker in sorted({broker for p in topic.partitions for broker in p.replicas}):
        if broker not in live:
            continue
        held = [TopicPartition(name, p.partition) for p in topic.partitions if broker in p.replicas]
        for time, offsets in ((EARLIEST, starts), (LATEST, ends)):
            found = offsets_of_replicas(client, broker, held, time)
            offsets.update(((tp.partition, broker), offset) for tp, offset in found.items())
    marks = {tp.partition: mark for tp, mark in high_watermarks(client, [topic]).items()}
    places = [(p.partition, broker) for p in topic.partitions for broker in p.replicas]
    return TopicDetail(topic, marks, {at: ReplicaOffsets(starts.get(at), ends.get(at)) for at in places})
