"""kafka-leader-election: elect preferred or unclean leaders."""

import json
from collections.abc import Iterable
from pathlib import Path

from odradek.apps.cli.kafka.exceptions import exception_text
from odradek.apps.cli.kafka.options import BOOTSTRAP, EVERY_TOOL, Given, Option, OptionTable
from odradek.apps.cli.kafka.tool import ToolError, connect, in_kafkas_words
from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.elections import ElectionType, elect_leaders
from odradek.model.topology import TopicPartition

TABLE = OptionTable(
    "This tool attempts to elect a new leader for a set of topic partitions. The type of elections supported are "
    "preferred replicas and unclean replicas.",
    BOOTSTRAP,
    Option("admin.config", "a file with properties of the client", "FILE"),
    Option("path-to-json-file", 'the partitions, as {"partitions":[{"topic":"foo","partition":1}]}', "FILE"),
    Option("topic", "the topic of the partition", "TOPIC"),
    Option("partition", "the partition", "N"),
    Option("all-topic-partitions", "all partitions"),
    Option("election-type", "preferred or unclean", "TYPE"),
    *EVERY_TOOL,
)


def run(given: Given) -> int:
    election_type, wanted = _check(given)
    with connect(given, config_option="admin.config") as client:
        try:
            outcomes = elect_leaders(client, election_type, wanted)
        except KafkaError as error:
            raise ToolError(in_kafkas_words(error)) from None
    return _report(election_type, outcomes)


def _check(given: Given) -> tuple[ElectionType, list[TopicPartition] | None]:
    if missing := [name for name in ("bootstrap-server", "election-type") if not given.has(name)]:
        raise ToolError(f"Missing required option(s): {', '.join(missing)}")
    if len(given.any_of("topic", "all-topic-partitions", "path-to-json-file")) != 1:
        raise ToolError(
            "One and only one of the following options is required: topic, all-topic-partitions, path-to-json-file"
        )
    if given.has("topic") and not given.has("partition"):
        raise ToolError("Missing required option(s): partition")
    if given.has("partition") and not given.has("topic"):
        raise ToolError("Option partition is only allowed if topic is used")
    text = given.text("election-type")
    try:
        election_type = ElectionType(text.lower())
    except ValueError:
        raise ToolError(f"Cannot parse argument '{text}' of option election-type") from None
    if given.has("path-to-json-file"):
        return election_type, _read(Path(given.text("path-to-json-file")))
    if given.has("topic"):
        return election_type, [TopicPartition(given.text("topic"), given.number("partition") or 0)]
    return election_type, None


def _read(path: Path) -> list[TopicPartition]:
    try:
        entries = json.loads(path.read_text())["partitions"]
        partitions = [TopicPartition(str(entry["topic"]), int(entry["partition"])) for entry in entries]
    except OSError as error:
        raise ToolError(f"{path} can't be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise ToolError('Replica election data is missing "partitions" field') from None
    if twice := [tp for tp in dict.fromkeys(partitions) if partitions.count(tp) > 1]:
        raise ToolError(f"Replica election data contains duplicate partitions: [{_joined(twice)}]")
    return partitions


def _report(election_type: ElectionType, outcomes: dict[TopicPartition, tuple[ErrorCode, str | None]]) -> int:
    name = election_type.name
    elected = [tp for tp, (code, _) in sorted(outcomes.items()) if code is ErrorCode.NONE]
    not_needed = [tp for tp, (code, _) in sorted(outcomes.items()) if code is ErrorCode.ELECTION_NOT_NEEDED]
    failed = {tp: outcome for tp, outcome in sorted(outcomes.items()) if tp not in {*elected, *not_needed}}
    if elected:
        print(f"Successfully completed leader election ({name}) for partitions {_joined(elected)}")
    if not_needed:
        print(f"Valid replica already elected for partitions {_joined(not_needed)}")
    for tp, (code, message) in failed.items():
        print(f"Error completing leader election ({name}) for partition: {tp}: {exception_text(code, message)}")
    if failed:
        raise ToolError(f"{len(failed)} replica(s) could not be elected")
    return 0


def _joined(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, partitions))
