"""kafka-get-offsets: the first and the end offsets of partitions, or the offsets at a time."""

import re
from collections.abc import Callable, Mapping

from odradek.apps.cli.kafka.options import BOOTSTRAP, COMMAND_CONFIG, EVERY_TOOL, Given, Option, OptionTable
from odradek.apps.cli.kafka.tool import ToolError, connect
from odradek.apps.cli.kafka.topics import topic_pattern
from odradek.client.cluster_client import TopicState
from odradek.client.partition_offsets import list_offsets, parse_time
from odradek.model.topology import TopicPartition

TABLE = OptionTable(
    "An interactive shell for getting topic-partition offsets.",
    Option("broker-list", "the same as --bootstrap-server", "HOST:PORT,…"),
    BOOTSTRAP,
    Option("topic-partitions", "patterns of topics with partitions", "TOPIC:1,TOPIC:0-3,…"),
    Option("topic", "a topic, or a regular expression", "TOPIC"),
    Option("partitions", "only these partitions", "N,…"),
    Option("time", "a time in ms, or -1 latest, -2 earliest, -3 max-timestamp", "TIME", default="latest"),
    COMMAND_CONFIG,
    Option("exclude-internal-topics", "without the cluster's own topics"),
    *EVERY_TOOL,
)
_RULE = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")

Filter = Callable[[TopicPartition], bool]


def run(given: Given) -> int:
    if given.has("topic-partitions") and given.any_of("topic", "partitions"):
        raise ToolError("Error occurred: --topic-partitions cannot be used with --topic or --partitions")
    is_wanted, time = _filter(given), _time(given.text("time"))
    server = "bootstrap-server" if given.has("bootstrap-server") or not given.has("broker-list") else "broker-list"
    with connect(given, server_option=server) as client:
        asked = _partitions(client.topics(), is_wanted, given.has("exclude-internal-topics"))
        if not asked:
            raise ToolError("Error occurred: Could not match any topic-partitions with the specified filters")
        found = list_offsets(client, dict.fromkeys(asked, time))
    for tp in sorted(asked, key=str):
        if found[tp].offset is not None:
            print(f"{tp.topic}:{tp.partition}:{found[tp].offset}")
    return 0


def _partitions(topics: Mapping[str, TopicState], is_wanted: Filter, exclude_internal: bool) -> list[TopicPartition]:
    return [
        tp
        for topic in topics.values()
        if not (exclude_internal and topic.is_internal)
        for tp in [TopicPartition(topic.name, state.partition) for state in topic.partitions]
        if is_wanted(tp)
    ]


def _filter(given: Given) -> Filter:
    if given.has("topic-partitions"):
        rules = [_rule(text) for text in given.text("topic-partitions").split(",")]
        return lambda tp: any(rule(tp) for rule in rules)
    pattern, text = topic_pattern(given.value("topic") or ".*"), given.value("partitions") or ""
    try:
        numbers = {int(number) for number in text.split(",")} if text else set()
    except ValueError:
        raise ToolError(
            "Error occurred: --partitions expects a comma separated list of numeric partition ids, "
            f"but received: {text}"
        ) from None
    return lambda tp: bool(pattern.fullmatch(tp.topic)) and (not numbers or tp.partition in numbers)


def _rule(text: str) -> Filter:
    """`topic`, `topic:5`, `topic:2-5` (without 5), `topic:2-`, `topic:-5`, `:5`."""
    found = _RULE.fullmatch(text)
    if found is None:
        raise ToolError(f"Error occurred: Invalid rule specification: {text}")
    topic, one, low, high = found.groups()
    pattern = topic_pattern(topic or ".*")
    first = int(one) if one else int(low or 0)
    end = int(one) + 1 if one else int(high) if high else None
    return lambda tp: (
        bool(pattern.fullmatch(tp.topic)) and tp.partition >= first and (end is None or tp.partition < end)
    )


def _time(text: str) -> int:
    try:
        return parse_time(text)
    except ValueError:
        raise ToolError(
            f"Error occurred: Malformed time argument {text}. Please use -1 or latest / -2 or earliest / "
            "-3 or max-timestamp, or a specified long format timestamp"
        ) from None
