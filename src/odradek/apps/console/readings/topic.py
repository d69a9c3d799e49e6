"""Details of one topic: begin and end of each replica's log, and transactions that hold readers back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from odradek.apps.console.readings.offsets import high_watermarks, last_stable_offsets, offsets_of_replicas
from odradek.base.errors import KafkaError
from odradek.client.broker_client import ConnectionFailed, UnsupportedByBroker
from odradek.client.cluster_client import ClusterClient, TopicState
from odradek.client.transaction_admin import OpenTransaction, all_open_transactions, list_transactions
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.list_offsets import EARLIEST, LATEST

_HELD_MAX = 100


@dataclass(frozen=True, slots=True)
class ReplicaOffsets:
    start: int | None
    end: int | None
    """None: the broker doesn't answer."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """An open transaction that holds the last stable offset of a partition back."""

    transaction: OpenTransaction
    transactional_id: str | None
    """None: no coordinator knows its producer, or it may not be seen."""


@dataclass(frozen=True, slots=True)
class TopicDetail:
    topic: TopicState
    high_watermarks: Mapping[int, int]
    replicas: Mapping[tuple[int, int], ReplicaOffsets]
    """Offsets of each partition and broker."""
    last_stable: Mapping[int, int] = field(default_factory=dict)
    open: tuple[HeldBack, ...] = ()


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
    stable = {tp.partition: offset for tp, offset in last_stable_offsets(client, [topic]).items()}
    behind = [TopicPartition(name, number) for number, mark in marks.items() if stable.get(number, mark) < mark]
    places = [(p.partition, broker) for p in topic.partitions for broker in p.replicas]
    replicas = {at: ReplicaOffsets(starts.get(at), ends.get(at)) for at in places}
    return TopicDetail(topic, marks, replicas, stable, _held_back(client, behind[:_HELD_MAX]))


def _held_back(client: ClusterClient, partitions: Sequence[TopicPartition]) -> tuple[HeldBack, ...]:
    if not partitions:
        return ()
    try:
        found = all_open_transactions(client, partitions)
        listed = list_transactions(client, producer_ids=sorted({each.producer_id for each in found})) if found else []
    except (KafkaError, ConnectionFailed, UnsupportedByBroker):
        return ()  # a broker of before transactions could be described, or a user who may not
    ids = {each.producer_id: each.transactional_id for each in listed}
    found.sort(key=lambda each: (each.partition, each.start_offset))
    return tuple(HeldBack(each, ids.get(each.producer_id)) for each in found)
