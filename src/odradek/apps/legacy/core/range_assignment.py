"""The range assignment, as every member of the oldest design computes it for itself.

Per topic: partitions in order of their numbers, streams in order of their names as text, and each stream gets a run of
neighbours; the first few get one more where it doesn't divide. Members that see the same group compute the same.
"""

from collections.abc import Collection, Mapping

from odradek.apps.legacy.core.znodes import Registration
from odradek.client.consumer_protocol import ranges
from odradek.model.topology import TopicPartition


def streams(member: str, count: int) -> list[str]:
    return [f"{member}-{number}" for number in range(count)]


def member_of(stream: str) -> str:
    return stream.rpartition("-")[0]


def assign(members: Mapping[str, Registration], partitions: Mapping[str, Collection[int]]) -> dict[TopicPartition, str]:
    """Return the stream of each partition; a topic without a subscriber is left out."""
    wanted: dict[str, list[str]] = {}
    for member, registration in members.items():
        for topic, count in registration.subscription.items():
            wanted.setdefault(topic, []).extend(streams(member, count))
    assigned: dict[TopicPartition, str] = {}
    for topic, consumers in wanted.items():
        for stream, numbers in ranges(consumers, sorted(partitions.get(topic, ()))).items():
            assigned |= {TopicPartition(topic, number): stream for number in numbers}
    return assigned
