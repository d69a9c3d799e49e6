"""Selection of topics and partitions by the arguments of a command."""

import re
from collections.abc import Iterable, Mapping

from odradek.apps.cli.usage import WrongUsage
from odradek.client.cluster_client import TopicState, unknown_partition, unknown_topic
from odradek.model.topology import TopicPartition


def select_topics(
    topics: Mapping[str, TopicState], wanted: str | None, *, exclude_internal: bool = False
) -> list[TopicState]:
    """Select topics by name: all, the named ones (commas between), or the ones that a regular expression matches as a
    whole.

    A topic with exactly that name comes before the expression, so `a.b` means itself where it exists and never `axb`.
    Raises UNKNOWN_TOPIC_OR_PARTITION when a name or an expression matches nothing.
    """
    visible = {name: topic for name, topic in sorted(topics.items()) if not (exclude_internal and topic.is_internal)}
    if wanted is None:
        return list(visible.values())
    chosen: dict[str, TopicState] = {}
    for item in wanted.split(","):
        name = item.strip()
        matches = [name] if name in visible else [known for known in visible if _pattern(name).fullmatch(known)]
        if not matches:
            raise unknown_topic(name)
        chosen.update((match, visible[match]) for match in matches)
    return list(chosen.values())


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise WrongUsage(f"'{text}' is neither a topic nor a regular expression: {error}", "--topic") from None


def parse_numbers(text: str, option: str) -> set[int]:
    """Parse `0,2,5`; an empty text has no numbers."""
    try:
        return {int(item) for item in text.split(",")} if text else set()
    except ValueError:
        raise WrongUsage(f"'{text}' is not a list of numbers like 0,1,2", option) from None


def parse_replica_assignment(text: str) -> list[list[int]]:
    """Parse `0:1,1:2`: the replicas of partition 0, then of partition 1, …; the first of each is preferred."""
    option = "--replica-assignment"
    try:
        partitions = [[int(broker) for broker in item.split(":")] for item in text.split(",")]
    except ValueError:
        raise WrongUsage(
            f"'{text}' is not of the form 0:1,1:2 (brokers of partition 0, brokers of partition 1, …)", option
        ) from None
    for number, brokers in enumerate(partitions):
        if len(set(brokers)) != len(brokers):
            raise WrongUsage(f"partition {number} names a broker twice: {brokers}", option)
        if len(brokers) != len(partitions[0]):
            raise WrongUsage(f"partition {number} has another number of replicas than 0", option)
    return partitions


def partitions_of(
    topics: Mapping[str, TopicState], wanted: Iterable[str], option: str = "--topic"
) -> list[TopicPartition]:
    """Return the partitions of `orders` (all of them) or `orders:0,2` (two)."""
    chosen: dict[TopicPartition, None] = {}
    for item in wanted:
        topic, colon, numbers = item.partition(":")
        if topic not in topics:
            raise unknown_topic(topic)
        there = [state.partition for state in topics[topic].partitions]
        asked = _numbers(item, numbers, option) if colon else there
        for number in asked:
            tp = TopicPartition(topic, number)
            if number not in there:
                raise unknown_partition(tp, len(there))
            chosen[tp] = None
    return list(chosen)


def _numbers(item: str, numbers: str, option: str) -> list[int]:
    try:
        return [int(number) for number in numbers.split(",")]
    except ValueError:
        raise WrongUsage(f"'{item}' is not TOPIC or TOPIC:0,1,2", option) from None
