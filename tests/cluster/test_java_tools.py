"""Kafka's own Java clients, by the tools that ship with it."""

import re
from pathlib import Path
from typing import Protocol

import pytest

from waiting import PATIENCE_S

from .conftest import COMPRESSIONS, JavaTool, TopicMaker, unused_name

API_VERSIONS_LINE = re.compile(r"^\s*(\w+)\((\d+)\): (\d+)(?: to (\d+))? ", re.MULTILINE)


class ClusterWithData(Protocol):
    @property
    def data_dir(self) -> Path: ...


def console_consumer(
    java_tool: JavaTool, bootstrap: str, topic: str, offset: object, count: int, *more: str
) -> list[str]:
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--partition", 0, "--offset", offset]
    output = java_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *arguments,
        "--max-messages",
        count,
        "--timeout-ms",
        1000 * PATIENCE_S,
        *more,
    )
    return output.splitlines()


def test_console_producer_and_consumer(bootstrap: str, java_tool: JavaTool, new_topic: TopicMaker) -> None:
    topic = new_topic()
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--property", "parse.key=true"]
    arguments += ["--property", "parse.headers=true", "--property", "null.marker=NULL"]
    lines = ["a:1,b:\tkey 0\tvalue 0", "a:2\tkey 1\tNULL", "a:3\tkey 2\tvalue 2"]
    java_tool("kafka.tools.ConsoleProducer", *arguments, stdin="\n".join(lines) + "\n")
    shown = ["--property", "print.key=true", "--property", "print.headers=true"]
    assert console_consumer(java_tool, bootstrap, topic, "earliest", 3, *shown) == [
        "a:1,b:\tkey 0\tvalue 0",
        "a:2\tkey 1\tnull",
        "a:3\tkey 2\tvalue 2",
    ]
    assert console_consumer(java_tool, bootstrap, topic, 2, 1) == ["value 2"]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_producer_performance_writes_segments_that_dump_log_segments_reads(
    bootstrap: str,
    odradek_cluster: ClusterWithData,
    java_tool: JavaTool,
    new_topic: TopicMaker,
    compression: str,
) -> None:
    topic, count = new_topic(), 10_000
    arguments = ["--topic", topic, "--num-records", count, "--record-size", 200, "--throughput", -1, "--producer-props"]
    settings = [f"bootstrap.servers={bootstrap}", f"compression.type={compression}"]
    output = java_tool("org.apache.kafka.tools.ProducerPerformance", *arguments, *settings)
    assert f"{count} records sent" in output.splitlines()[-1]
    (segment,) = odradek_cluster.data_dir.rglob(f"{topic}-0/00000000000000000000.log")
    dump = java_tool("kafka.tools.DumpLogSegments", "--files", segment, "--deep-iteration")
    assert re.findall(r"compresscodec: (\w+)", dump)[0].lower() == compression
    assert set(re.findall(r"isvalid: (\w+)", dump)) == {"true"}
    assert "producerId: -1 " not in dump
    assert [int(offset) for offset in re.findall(r"^\| offset: (\d+)", dump, re.MULTILINE)] == list(range(count))


def test_end_to_end_latency(bootstrap: str, java_tool: JavaTool, new_topic: TopicMaker) -> None:
    output = java_tool("org.apache.kafka.tools.EndToEndLatency", bootstrap, new_topic(), 500, "all", 100)
    found = re.search(r"50th = (\d+), 99th = (\d+)", output)
    assert found is not None
    assert int(found[1]) <= int(found[2])


def test_topic_command_creates_describes_alters_and_deletes(bootstrap: str, java_tool: JavaTool) -> None:
    name = unused_name()

    def topics(*arguments: object) -> str:
        return java_tool(
            "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", bootstrap, "--topic", name, *arguments
        )

    created = topics("--create", "--partitions", 2, "--replication-factor", 1, "--config", "retention.ms=12345")
    assert created.splitlines()[-1] == f"Created topic {name}."
    topics("--alter", "--partitions", 3)
    described = topics("--describe")
    assert re.search(rf"Topic: {name}\s+TopicId: \S{{22}}\s+PartitionCount: 3\s+ReplicationFactor: 1", described)
    assert "retention.ms=12345" in described
    assert len(re.findall(r"Leader: 0\s+Replicas: 0\s+Isr: 0", described)) == 3
    topics("--delete")
    assert name not in topics("--list")


def test_get_offset_shell_and_delete_records(
    bootstrap: str, java_tool: JavaTool, new_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = new_topic(partitions=2)
    lines = "".join(f"{number}\n" for number in range(40))
    java_tool("kafka.tools.ConsoleProducer", "--bootstrap-server", bootstrap, "--topic", topic, stdin=lines)
    plan = tmp_path / "delete.json"
    plan.write_text(f'{{"version": 1, "partitions": [{{"topic": "{topic}", "partition": 0, "offset": -1}}]}}')
    command = ["--bootstrap-server", bootstrap, "--offset-json-file", plan]
    deleted = java_tool("org.apache.kafka.tools.DeleteRecordsCommand", *command)
    low_watermark = re.search(rf"partition: {topic}-0\s+low_watermark: (\d+)", deleted)
    assert low_watermark is not None

    def offsets(time: int) -> dict[str, str]:
        arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--time", time]
        output = java_tool("org.apache.kafka.tools.GetOffsetShell", *arguments)
        return dict(line.rsplit(":", 1) for line in output.split())

    latest = offsets(-1)
    assert sum(map(int, latest.values())) == 40
    assert offsets(-2) == {f"{topic}:0": low_watermark[1], f"{topic}:1": "0"}
    assert latest[f"{topic}:0"] == low_watermark[1]


def test_broker_api_versions_are_those_of_kafka(bootstrap: str, java_tool: JavaTool) -> None:
    output = java_tool("kafka.admin.BrokerApiVersionsCommand", "--bootstrap-server", bootstrap)
    versions = {name: (int(least), int(most or least)) for name, _, least, most in API_VERSIONS_LINE.findall(output)}
    assert versions["Produce"] == (0, 12)  # 12 is Kafka 4's, for version 2 of transactions
    assert versions["Fetch"] == (0, 17)
    assert versions["ListOffsets"] == (0, 9)
    assert versions["Metadata"] == (0, 12)
    assert versions["ApiVersions"] == (0, 4)
    assert versions["InitProducerId"] == (0, 5)


def test_configs_and_log_directories(
    bootstrap: str, odradek_cluster: ClusterWithData, java_tool: JavaTool, new_topic: TopicMaker
) -> None:
    topic = new_topic()
    entity = ["--bootstrap-server", bootstrap, "--entity-type", "topics", "--entity-name", topic]
    altered = java_tool(
        "kafka.admin.ConfigCommand", *entity, "--alter", "--add-config", "cleanup.policy=[compact,delete]"
    )
    assert "Completed updating config" in altered
    described = java_tool("kafka.admin.ConfigCommand", *entity, "--describe")
    assert "cleanup.policy=compact,delete" in described
    listing = java_tool(
        "org.apache.kafka.tools.LogDirsCommand", "--bootstrap-server", bootstrap, "--describe", "--topic-list", topic
    )
    assert f'"partition":"{topic}-0"' in listing
    assert str(odradek_cluster.data_dir) in listing
