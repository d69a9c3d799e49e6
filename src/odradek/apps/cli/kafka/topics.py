"""kafka-topics: create, list, describe, alter and delete topics."""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from odradek.apps.cli.kafka.options import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    EVERY_TOOL,
    Given,
    Option,
    OptionTable,
    WrongOptions,
)
from odradek.apps.cli.kafka.tool import connect, in_kafkas_words
from odradek.base.config.definition import ConfigSource
from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.broker_client import ConnectionFailed
from odradek.client.cluster_client import ClusterClient, PartitionState, TopicState
from odradek.client.reassignments import ongoing_reassignments
from odradek.client.topic_admin import (
    CLUSTER_DEFAULT,
    add_partitions,
    create_topic,
    delete_topic,
    describe_topic_configs,
)
from odradek.model.topology import ReplicaAssignment, TopicPartition
from odradek.model.uuid_text import uuid_from_text, uuid_to_text
from odradek.protocol.messages.describe_configs import DescribeConfigsResourceResult

TABLE = OptionTable(
    "This tool helps to create, delete, describe, or change a topic.",
    BOOTSTRAP,
    COMMAND_CONFIG,
    Option("list", "list all topics"),
    Option("create", "create a topic"),
    Option("delete", "delete topics"),
    Option("alter", "add partitions"),
    Option("describe", "show partitions and settings"),
    Option("topic", "the topic, or a regular expression unless with --create", "TOPIC"),
    Option("topic-id", "the topic to describe, by its id", "ID"),
    Option("config", "a setting of the topic being created", "NAME=VALUE"),
    Option("delete-config", "not supported with --bootstrap-server", "NAME"),
    Option("partitions", "how many", "N"),
    Option("replication-factor", "replicas of each partition", "N"),
    Option("replica-assignment", "the brokers of each partition", "0:1,1:2,…"),
    Option("under-replicated-partitions", "with --describe: only partitions with a replica out of sync"),
    Option("unavailable-partitions", "with --describe: only partitions without a leader"),
    Option("under-min-isr-partitions", "with --describe: only partitions with too few replicas in sync"),
    Option("at-min-isr-partitions", "with --describe: only partitions with just enough replicas in sync"),
    Option("topics-with-overrides", "with --describe: only topics with settings of their own"),
    Option("if-exists", "with --alter, --delete, --describe: no error where there is no such topic"),
    Option("if-not-exists", "with --create: no error where the topic exists"),
    Option("exclude-internal", "with --list, --describe: without the cluster's own topics"),
    Option("partition-size-limit-per-response", "accepted, without effect", "N"),
    *EVERY_TOOL,
)
_ACTIONS = ("list", "describe", "create", "alter", "delete")
_REPORTS = (
    "under-replicated-partitions",
    "unavailable-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
)
_ONLY_WITH = {
    "config": ("create",),
    "partitions": ("alter", "create"),
    "replication-factor": ("create",),
    "replica-assignment": ("alter", "create"),
    **dict.fromkeys((*_REPORTS, "topics-with-overrides"), ("describe",)),
    "if-exists": ("alter", "delete", "describe"),
    "if-not-exists": ("create",),
    "exclude-internal": ("list", "describe"),
}
_COLLISION_WARNING = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. "
    "To avoid issues it is best to use either, but not both."
)
_MAX_SHORT = 32767


class _Refused(Exception):
    """Failure that Kafka's tool prints after "Error while executing topic command : "."""


def run(given: Given) -> int:
    action = _check(given)
    try:
        with connect(given) as client:
            _RUN[action](client, given)
    except (_Refused, ConnectionFailed) as error:
        return _failed(str(error))
    except KafkaError as error:
        return _failed(in_kafkas_words(error))
    return 0


def _failed(reason: str) -> int:
    print(f"Error while executing topic command : {reason}")
    return 1


def _check(given: Given) -> str:
    action = given.one_action(*_ACTIONS)
    if not given.has("bootstrap-server"):
        raise WrongOptions("--bootstrap-server must be specified")
    if action in ("create", "alter", "delete"):
        given.require("topic")
    if action == "alter":
        given.require("partitions")
    for name, actions in _ONLY_WITH.items():
        if given.has(name) and action not in actions:
            raise WrongOptions(f'Option "[{name}]" can\'t be used with option "[{action}]"')
    if action == "create":
        given.forbid_with("replica-assignment", "partitions", "replication-factor")
    given.forbid_with("topics-with-overrides", *_REPORTS)
    return action


def _create(client: ClusterClient, given: Given) -> None:
    name = given.text("topic")
    partitions, replicas = given.number("partitions"), given.number("replication-factor")
    assignment, configs = _assignment(given), _configs(given)
    if "." in name or "_" in name:
        print(_COLLISION_WARNING)
    if replicas is not None and not 1 <= replicas <= _MAX_SHORT:
        raise _Refused(f"The replication factor must be between 1 and {_MAX_SHORT} inclusive")
    if partitions is not None and partitions < 1:
        raise _Refused("The partitions must be greater than 0")
    try:
        create_topic(
            client,
            name,
            partitions=CLUSTER_DEFAULT if partitions is None else partitions,
            replication_factor=CLUSTER_DEFAULT if replicas is None else replicas,
            configs=configs,
            assignment=assignment,
        )
    except KafkaError as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS or not given.has("if-not-exists"):
            raise
    else:
        print(f"Created topic {name}.")


def _list(client: ClusterClient, given: Given) -> None:
    print("\n".join(_matching(client.topics(), given)))


def _alter(client: ClusterClient, given: Given) -> None:
    topics, assignment = client.topics(), _assignment(given)
    for name in _existing(topics, given):
        add_partitions(client, name, int(given.text("partitions")), assignment[len(topics[name].partitions) :])


def _delete(client: ClusterClient, given: Given) -> None:
    for name in _existing(client.topics(), given):
        delete_topic(client, name)


def _describe(client: ClusterClient, given: Given) -> None:
    topics = client.topics()
    names = _by_id(topics, given) if given.has("topic-id") else _existing(topics, given)
    configs = describe_topic_configs(client, names)
    moves = ongoing_reassignments(client)
    live = set(client.brokers())
    lines: list[str] = []
    for name in names:
        partitions = [
            _Partition(name, state, moves.get(TopicPartition(name, state.partition)), configs[name], live)
            for state in topics[name].partitions
        ]
        lines += _described(topics[name], partitions, configs[name], given)
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _described(
    topic: TopicState, partitions: "list[_Partition]", configs: list[DescribeConfigsResourceResult], given: Given
) -> list[str]:
    reports = given.any_of(*_REPORTS)
    if reports:
        return [str(partition) for partition in partitions if any(partition.is_in(report) for report in reports)]
    overrides = [f"{c.name}={c.value}" for c in configs if c.config_source != ConfigSource.DEFAULT_CONFIG]
    if given.has("topics-with-overrides"):
        return [_headline(topic, partitions, overrides)] if overrides else []
    return [_headline(topic, partitions, overrides), *map(str, partitions)]


def _headline(topic: TopicState, partitions: "list[_Partition]", overrides: list[str]) -> str:
    topic_id = f"\tTopicId: {uuid_to_text(topic.topic_id)}" if topic.topic_id.int else ""
    return (
        f"Topic: {topic.name}{topic_id}\tPartitionCount: {len(partitions)}"
        f"\tReplicationFactor: {partitions[0].replication_factor}\tConfigs: {','.join(overrides)}"
    )


@dataclass(frozen=True, slots=True)
class _Partition:
    topic: str
    state: PartitionState
    move: ReplicaAssignment | None
    configs: list[DescribeConfigsResourceResult]
    live: set[int]

    @property
    def replication_factor(self) -> int:
        move = self.move
        if move is not None and set(self.state.replicas) & {*move.adding, *move.removing}:
            return len(move.replicas) - len(move.adding)
        return len(self.state.replicas)

    @property
    def min_isr(self) -> int:
        return int(next((c.value or "1" for c in self.configs if c.name == "min.insync.replicas"), "1"))

    def is_in(self, report: str) -> bool:
        state = self.state
        match report:
            case "under-replicated-partitions":
                return len(state.isr) < self.replication_factor
            case "unavailable-partitions":
                return not state.is_available or state.leader not in self.live
            case "under-min-isr-partitions":
                return not state.is_available or len(state.isr) < self.min_isr
            case _:
                return len(state.isr) == self.min_isr

    def __str__(self) -> str:
        state = self.state
        moving = ""
        if self.move is not None:
            moving = (
                f"\tAdding Replicas: {_numbers(self.move.adding)}\tRemoving Replicas: {_numbers(self.move.removing)}"
            )
        return (
            f"\tTopic: {self.topic}\tPartition: {state.partition}"
            f"\tLeader: {state.leader if state.is_available else 'none'}"
            f"\tReplicas: {_numbers(state.replicas)}\tIsr: {_numbers(state.isr)}{moving}"
            "\tElr: N/A\tLastKnownElr: N/A"
        )


def _numbers(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))


def _matching(topics: Mapping[str, TopicState], given: Given) -> list[str]:
    """Sorted. A list of patterns with commas, each of which must match a name as a whole."""
    wanted = given.value("topic")
    names = [name for name in sorted(topics) if not (topics[name].is_internal and given.has("exclude-internal"))]
    if wanted is None:
        return names
    return [name for name in names if topic_pattern(wanted).fullmatch(name)]


def topic_pattern(text: str) -> re.Pattern[str]:
    """Commas mean "or", as everywhere in Kafka's tools; quotes and spaces around are dropped."""
    alternatives = text.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        return re.compile(alternatives)
    except re.error:
        raise WrongOptions(f"{text} is an invalid regex.") from None


def _existing(topics: Mapping[str, TopicState], given: Given) -> list[str]:
    found = _matching(topics, given)
    if not found and given.value("topic") and not given.has("if-exists"):
        raise _Refused(f"Topic 'Optional[{given.text('topic')}]' does not exist as expected")
    return found


def _by_id(topics: Mapping[str, TopicState], given: Given) -> list[str]:
    text = given.text("topic-id")
    try:
        wanted: UUID | None = uuid_from_text(text)
    except ValueError:
        raise _Refused(f"Input string `{text}` is not a topic id") from None
    found = [name for name, topic in topics.items() if topic.topic_id == wanted]
    if not found and not given.has("if-exists"):
        raise _Refused(f"TopicId '{text}' does not exist as expected")
    return found


def _assignment(given: Given) -> list[list[int]]:
    text = given.value("replica-assignment")
    if not text:
        return []
    try:
        partitions = [[int(broker) for broker in item.split(":")] for item in text.split(",")]
    except ValueError:
        raise WrongOptions(f'For input string: "{text}"') from None
    for number, brokers in enumerate(partitions):
        if twice := [broker for broker in dict.fromkeys(brokers) if brokers.count(broker) > 1]:
            raise WrongOptions(
                f"Partition replica lists may not contain duplicate entries: {','.join(map(str, twice))}"
            )
        if len(brokers) != len(partitions[0]):
            raise WrongOptions(f"Partition {number} has different replication factor: {brokers}")
    return partitions


def _configs(given: Given) -> dict[str, str]:
    configs: dict[str, str] = {}
    for item in given.values("config"):
        name, *values = re.split(r"\s*=\s*", item)
        if len(values) != 1 or not values[0]:
            raise _Refused(
                'requirement failed: Invalid topic config: all configs to be added must be in the format "key=val".'
            )
        configs[name.strip()] = values[0].strip()
    return configs


_RUN = {"list": _list, "describe": _describe, "create": _create, "alter": _alter, "delete": _delete}
