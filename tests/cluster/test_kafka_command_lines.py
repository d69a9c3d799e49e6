"""`odradek kafka-topics …` and its siblings beside Kafka's own tools, on the same cluster: they must print the same.

What shows something is asked twice, by theirs and by ours. What changes something is done by each to a topic or a group
of its own, whose names are written as placeholders.
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, TopicPartition

from kafka_tools import KafkaTools
from odradek.apps.cli import main
from odradek.testing import OdradekCluster

from .conftest import TopicMaker, unused_name


class Told(NamedTuple):
    status: int
    text: str


Side = Callable[..., Told]
# stack traces, log lines, and the list of all options after a wrong one
_NOISE = re.compile(
    r"\s*(at |\.\.\. |Suppressed: |Caused by: |ERROR |WARN |\[|Option +Description|[-\w.]+Exception: |java\.|org\.)"
)
_PARTITIONS = re.compile(r'(?<=[\[}]),?(?=\{"partition")|(?=\],"error")')  # of kafka-log-dirs, by hashes too


@pytest.fixture
def sides(
    kafka_tools: KafkaTools,
    bootstrap: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> tuple[Side, Side]:
    """Kafka's tool and ours: each runs one to its end, with everything that it prints."""

    def whole(tool: str, arguments: tuple[object, ...]) -> list[str]:
        named = "--producer-props" in arguments or tool == "kafka-dump-log"
        return [*([] if named else ["--bootstrap-server", bootstrap]), *map(str, arguments)]

    def theirs(tool: str, *arguments: object, stdin: str = "") -> Told:
        printed = kafka_tools.run(tool, *whole(tool, arguments), stdin=stdin)
        return Told(printed.status, printed.text)

    def ours(tool: str, *arguments: object, stdin: str = "") -> Told:
        typed = tmp_path / "typed"
        typed.write_text(stdin)
        with open(typed) as file:
            monkeypatch.setattr(sys, "stdin", file)
            capfd.readouterr()
            status = main.run([tool, *whole(tool, arguments)])
        output = capfd.readouterr()
        return Told(status, output.err + output.out)

    return theirs, ours


def lines(told: Told) -> list[str]:
    """In any order: standard output and error are not told apart, and Kafka's maps come in the order of hashes."""
    whole = [line.rstrip() for line in told.text.splitlines() if line.strip() and not _NOISE.match(line)]
    return sorted(part for line in whole for part in _PARTITIONS.split(line))


@pytest.fixture
def topic(new_topic: TopicMaker, sides: tuple[Side, Side]) -> str:
    name = new_topic(partitions=3, retention_ms="123456789", cleanup_policy="compact,delete")
    keyed = ("--property", "parse.key=true", "--property", "key.separator=:")
    records = "".join(f"k{n}:v{n}\n" for n in range(30))
    assert sides[0]("kafka-console-producer", "--topic", name, *keyed, stdin=records).status == 0
    return name


@pytest.fixture
def group(bootstrap: str, topic: str) -> str:
    name = unused_name()
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name, "log_level": 0})
    consumer.commit(offsets=[TopicPartition(topic, 0, 1), TopicPartition(topic, 2, 2)], asynchronous=False)
    consumer.close()
    return name


def test_what_shows_something(sides: tuple[Side, Side], topic: str, group: str) -> None:
    theirs, ours = sides
    entity = ("--entity-type", "topics", "--entity-name", topic)
    reset = ("--reset-offsets", "--group", group, "--topic", f"{topic}:0")
    differing = []
    for command in (
        ("kafka-topics", "--list"),
        ("kafka-topics", "--list", "--exclude-internal", "--topic", "topic-.*"),
        ("kafka-topics", "--describe", "--topic", topic),
        ("kafka-topics", "--describe", "--at-min-isr-partitions", "--topic", topic),
        ("kafka-topics", "--describe", "--under-replicated-partitions"),
        ("kafka-topics", "--describe", "--topics-with-overrides", f"--topic={topic}"),
        ("kafka-topics", "--describe", "--topic", "absent"),
        ("kafka-topics", "--describe", "--topic", "absent", "--if-exists"),
        ("kafka-configs", "--describe", *entity),
        ("kafka-configs", "--describe", "--all", "--topic", topic),
        ("kafka-configs", "--describe", "--all", "--broker", "0"),
        ("kafka-get-offsets", "--topic", topic),
        ("kafka-get-offsets", "--topic-partitions", f"{topic}:0-2", "--time", "-2"),
        ("kafka-get-offsets", "--topic", "absent"),
        ("kafka-get-offsets", "--topic", topic, "--partitions", "x"),
        ("kafka-log-dirs", "--describe", "--topic-list", topic),
        ("kafka-log-dirs", "--describe", "--broker-list", "7"),
        ("kafka-broker-api-versions",),
        ("kafka-leader-election", "--election-type", "preferred", "--topic", topic, "--partition", "0"),
        ("kafka-leader-election", "--election-type", "preferred", "--topic", "absent", "--partition", "0"),
        ("kafka-reassign-partitions", "--list"),
        ("kafka-consumer-groups", "--list"),
        ("kafka-consumer-groups", "--list", "--state"),
        ("kafka-consumer-groups", "--describe", "--group", group),
        ("kafka-consumer-groups", "--describe", "--group", group, "--state"),
        ("kafka-consumer-groups", "--describe", "--group", group, "--members", "--verbose"),
        ("kafka-consumer-groups", "--describe", "--group", "absent"),
        ("kafka-consumer-groups", *reset, "--to-latest", "--dry-run"),
        ("kafka-console-consumer", "--topic", topic, "--partition", "0", "--offset", "1", "--max-messages", "3"),
    ):
        kafkas, odradeks = theirs(*command), ours(*command)
        if (odradeks.status, lines(odradeks)) != (kafkas.status, lines(kafkas)):
            differing.append((command, kafkas, odradeks))
    assert not differing


def test_what_records_look_like(sides: tuple[Side, Side], topic: str) -> None:
    theirs, ours = sides
    shown = [f"--property=print.{part}=true" for part in ("key", "headers", "timestamp", "offset", "partition")]
    command = ("kafka-console-consumer", "--topic", topic, "--from-beginning", "--max-messages", "30", *shown)
    assert lines(ours(*command)) == lines(theirs(*command))


def test_what_changes_something(
    sides: tuple[Side, Side], new_topic: TopicMaker, bootstrap: str, tmp_path: Path
) -> None:
    stories = []
    for side in sides:
        name, group, told = unused_name(), unused_name(), []
        offsets, moves = tmp_path / f"{name}.offsets", tmp_path / f"{name}.moves"
        offsets.write_text(json.dumps({"partitions": [{"topic": name, "partition": 1, "offset": 2}], "version": 1}))
        moves.write_text(json.dumps({"partitions": [{"topic": name, "partition": 0, "replicas": [0]}], "version": 1}))
        entity = ("--entity-type", "topics", "--entity-name", name)
        reset = ("--reset-offsets", "--group", group, "--topic", name)
        props = ("--producer-props", f"bootstrap.servers={bootstrap}", "acks=1")
        client = ("--entity-type", "clients", "--entity-name", group)
        load = ("--topic", name, "--num-records", "50", "--record-size", "9")
        for command in (
            ("kafka-topics", "--create", "--topic", name, "--partitions", "2", "--config", "segment.bytes=1048576"),
            ("kafka-topics", "--create", "--topic", name),
            ("kafka-topics", "--create", "--topic", name, "--if-not-exists"),
            ("kafka-topics", "--create", "--topic", "x", "--replication-factor", "9"),
            ("kafka-topics", "--alter", "--topic", name, "--partitions", "3"),
            ("kafka-topics", "--alter", "--topic", name, "--partitions", "1"),
            ("kafka-configs", "--alter", *entity, "--add-config", "retention.ms=5000,cleanup.policy=[compact,delete]"),
            ("kafka-configs", "--alter", *entity, "--delete-config", "retention.ms"),
            ("kafka-configs", "--alter", *entity, "--delete-config", "retention.ms"),
            ("kafka-configs", "--describe", *entity),
            ("kafka-configs", "--alter", *entity, "--delete-config", "cleanup.policy"),
            (
                "kafka-configs",
                "--alter",
                *client,
                "--add-config",
                "producer_byte_rate=12345678,request_percentage=250.5",
            ),
            ("kafka-configs", "--describe", *client),
            ("kafka-configs", "--alter", *client, "--delete-config", "consumer_byte_rate"),
            ("kafka-configs", "--alter", *client, "--delete-config", "producer_byte_rate,request_percentage"),
            ("kafka-configs", "--describe", *client),
            ("kafka-producer-perf-test", *load, "--throughput", "-1", *props),
            ("kafka-console-producer", "--topic", name, "--property", "parse.key=true"),
            ("kafka-delete-records", "--offset-json-file", offsets),
            ("kafka-reassign-partitions", "--execute", "--reassignment-json-file", moves),
            ("kafka-reassign-partitions", "--verify", "--reassignment-json-file", moves),
            ("kafka-reassign-partitions", "--cancel", "--reassignment-json-file", moves),
            ("kafka-console-consumer", "--topic", name, "--group", group, "--from-beginning", "--max-messages", "4"),
            ("kafka-consumer-groups", *reset, "--to-latest", "--execute", "--export"),
            ("kafka-consumer-groups", "--delete-offsets", "--group", group, "--topic", name),
            ("kafka-consumer-groups", "--delete", "--group", group),
            ("kafka-topics", "--delete", "--topic", name),
            ("kafka-topics", "--delete", "--topic", name),
        ):
            printed = side(*command, stdin="".join(f"k{n}\tv{n}\n" for n in range(40)))
            text = printed.text.replace(name, "TOPIC").replace(group, "GROUP")
            if command[0] == "kafka-producer-perf-test":
                text = re.sub(r"\d+(\.\d+)?", "N", text)
            if command[0] == "kafka-console-consumer":
                text = "".join(line for line in text.splitlines() if line.startswith("Processed"))
            if command[0] == "kafka-consumer-groups":
                text = re.sub(r"\d+", "N", text)  # where records without a key went is chance
            told.append((command[0], command[1], printed.status, lines(Told(0, text))))
        stories.append(told)
    assert [(kafkas, odradeks) for kafkas, odradeks in zip(*stories, strict=True) if kafkas != odradeks] == []


def test_the_segments_read_alike(sides: tuple[Side, Side], topic: str, odradek_cluster: OdradekCluster) -> None:
    theirs, ours = sides
    for path in sorted(odradek_cluster.data_dir.rglob(f"{topic}-0/0*.*")):
        if path.suffix in (".log", ".index", ".timeindex"):
            command = ("kafka-dump-log", "--print-data-log", "--files", path)
            assert lines(ours(*command)) == lines(theirs(*command)), path


@pytest.mark.parametrize(
    "wrong",
    [
        ("kafka-topics", "--create"),
        ("kafka-topics", "--list", "--create", "--topic", "t"),
        ("kafka-topics", "--create", "--topic", "t", "--nosuch"),
        ("kafka-topics", "--create", "--topic", "t", "--partitions"),
        ("kafka-topics", "--create", "--topic", "t", "--partitions", "many"),
        ("kafka-topics", "--list", "--partitions", "3"),
        ("kafka-topics", "--create", "--topic", "t", "--replica-assignment", "0:0"),
        ("kafka-configs", "--describe"),
        ("kafka-configs", "--describe", "--entity-type", "moons"),
        ("kafka-configs", "--alter", "--topic", "t", "--add-config", "a"),
        ("kafka-configs", "--alter", "--topic", "t"),
        ("kafka-consumer-groups", "--describe"),
        ("kafka-consumer-groups", "--reset-offsets", "--group", "g", "--topic", "t"),
        ("kafka-leader-election", "--election-type", "preferred"),
        ("kafka-leader-election", "--election-type", "loud", "--all-topic-partitions"),
        ("kafka-reassign-partitions", "--execute"),
        ("kafka-reassign-partitions", "--verify", "--reassignment-json-file", "/nosuch"),
        ("kafka-delete-records",),
        ("kafka-console-consumer", "--topic", "t", "--offset", "3"),
        ("kafka-log-dirs",),
        ("kafka-get-offsets", "--time", "soon"),
    ],
)
def test_wrong_options_end_with_1_and_one_line(sides: tuple[Side, Side], wrong: tuple[str, ...]) -> None:
    told = sides[1](*wrong)
    assert told.status == 1
    assert len(told.text.splitlines()) == 1
    assert "unexpected" not in told.text
