"""The consumer protocol: the bytes that members of a group put into joins and syncs, and the range assignor.

Brokers pass these bytes on unread. The range assignor is the one that every Kafka client knows.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from struct import Struct

from odradek.model.topology import TopicPartition
from odradek.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from odradek.protocol.messages.consumer_protocol_assignment import TopicPartition as AssignedTopic
from odradek.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from odradek.protocol.primitives import ProtocolError

PROTOCOL_TYPE = "consumer"
RANGE = "range"
_VERSION = Struct(">h")
_NEWEST_VERSION = 3


def encode_subscription(topics: Sequence[str]) -> bytes:
    return _VERSION.pack(0) + ConsumerProtocolSubscription(topics=list(topics)).encode(0)


def read_subscription(data: bytes) -> list[str]:
    version = min(_VERSION.unpack_from(data)[0], _NEWEST_VERSION)
    subscription, _ = ConsumerProtocolSubscription.decode(memoryview(data), _VERSION.size, version)
    return list(subscription.topics)


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for tp in partitions:
        topics[tp.topic].append(tp.partition)
    assigned = [AssignedTopic(topic=topic, partitions=numbers) for topic, numbers in topics.items()]
    return _VERSION.pack(0) + ConsumerProtocolAssignment(assigned_partitions=assigned).encode(0)


def read_assignment(data: bytes) -> list[TopicPartition]:
    """A consumer's partitions, in the order of its assignment; nothing where it has none yet, or isn't understood."""
    if len(data) < _VERSION.size:
        return []
    version = min(_VERSION.unpack_from(data)[0], _NEWEST_VERSION)
    if version < 0:
        return []
    try:
        assignment, _ = ConsumerProtocolAssignment.decode(memoryview(data), _VERSION.size, version)
    except ProtocolError:
        return []
    return [
        TopicPartition(topic.topic, number) for topic in assignment.assigned_partitions for number in topic.partitions
    ]


def assign_ranges(
    wanted: Mapping[str, Sequence[str]], partition_counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """Assign topic by topic: partitions to the members that subscribe to it, in the order of their ids."""
    shares: dict[str, list[TopicPartition]] = {member: [] for member in wanted}
    for topic, count in sorted(partition_counts.items()):
        members = [member for member, topics in wanted.items() if topic in topics]
        for member, numbers in ranges(members, range(count)).items():
            shares[member] += [TopicPartition(topic, number) for number in numbers]
    return shares


def ranges(consumers: Iterable[str], partitions: Sequence[int]) -> dict[str, Sequence[int]]:
    """Cut the partitions of one topic into neighbours for each consumer, in order of the consumers' names; the first
    consumers get one more where it doesn't divide."""
    ordered = sorted(consumers)
    found: dict[str, Sequence[int]] = {}
    first = 0
    for position, consumer in enumerate(ordered):
        last = first + len(partitions) // len(ordered) + (position < len(partitions) % len(ordered))
        found[consumer] = partitions[first:last]
        first = last
    return found
