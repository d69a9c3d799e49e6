"""Kafka's tools that the other tests don't run, against Apache Kafka and against Odradek: they must tell the same."""

import json
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from apache_kafka import KafkaPeer
from class_archive import class_path
from java_program import SHORT_LIVED
from kafka_tools import CLASSES, KafkaTools
from odradek.testing import OdradekCluster

from .conftest import unused_name

pytestmark = pytest.mark.timeout(300)
_COUNT = 20


class Target(NamedTuple):
    bootstrap: str
    topic: str


@pytest.fixture
def targets(kafka_peer: KafkaPeer, odradek_cluster: OdradekCluster, kafka_tools: KafkaTools) -> list[Target]:
    """Apache Kafka, then Odradek, each with a topic of the same name."""
    name = unused_name()
    servers = [kafka_peer.bootstrap_servers, odradek_cluster.bootstrap_servers]
    for server in servers:
        create = ("--create", "--topic", name, "--partitions", "2", "--replication-factor", "1")
        assert kafka_tools.run("kafka-topics", "--bootstrap-server", server, *create).status == 0
    return [Target(server, name) for server in servers]


def events(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """The names of what the verifiable tools report, each with the fields it has."""
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return sorted({(event["name"], tuple(sorted(event))) for event in found})


def run_alone(jars: Path, tool: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """In a JVM of its own, for tools that do something when it ends."""
    command = ["java", "-Xmx128m", *SHORT_LIVED, *class_path(jars), CLASSES[tool], *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def test_verifiable_producer_and_consumer(targets: list[Target], kafka_lib: Path) -> None:
    produced, consumed = [], []
    for target in targets:
        where = ("--bootstrap-server", target.bootstrap, "--topic", target.topic, "--max-messages", _COUNT)
        written = run_alone(kafka_lib, "kafka-verifiable-producer", *where)
        assert written.stdout.count('"producer_send_success"') == _COUNT
        group = ("--group-id", "verifying", "--reset-policy", "earliest")
        read = run_alone(kafka_lib, "kafka-verifiable-consumer", *where, *group)
        reports = [json.loads(line) for line in read.stdout.splitlines()]
        assert sum(report["count"] for report in reports if report["name"] == "records_consumed") == _COUNT
        produced.append((written.returncode, events(written.stdout)))
        consumed.append((read.returncode, events(read.stdout)))
    assert produced[0] == produced[1]
    assert consumed[0] == consumed[1]


def test_the_perf_tests(targets: list[Target], kafka_tools: KafkaTools) -> None:
    told = []
    for target in targets:
        load = ("--topic", target.topic, "--num-records", 100, "--record-size", 10, "--throughput", -1)
        written = kafka_tools.run(
            "kafka-producer-perf-test", *load, "--producer-props", f"bootstrap.servers={target.bootstrap}"
        )
        where = ("--bootstrap-server", target.bootstrap, "--topic", target.topic, "--messages", 100)
        read = kafka_tools.run("kafka-consumer-perf-test", *where)
        told.append([re.sub(r"-?[\d.:]+|Infinity|NaN", "N", printed.text) for printed in (written, read)])
    assert told[0] == told[1]


def test_replica_verification_finds_no_difference(targets: list[Target], kafka_lib: Path) -> None:
    """It goes on for ever: its first report is enough."""
    told = []
    for target in targets:
        options = ["--broker-list", target.bootstrap, "--topics-include", target.topic, "--report-interval-ms", "500"]
        tool = CLASSES["kafka-replica-verification"]
        command = ["java", "-Xmx128m", *SHORT_LIVED, *class_path(kafka_lib), tool, *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(2)]
            process.kill()
        told.append([re.sub(r"^[-\d :,]+", "", line) for line in lines])
    assert told[0] == told[1]
    assert "max lag is 0" in told[1][1]


def test_zookeeper_shell_sees_the_broker(odradek_cluster: OdradekCluster, kafka_lib: Path) -> None:
    printed = run_alone(kafka_lib, "zookeeper-shell", "-server", odradek_cluster.zookeeper, "ls", "/brokers/ids")
    # Another thread of the shell prints the event of its connection, before the answer or after it.
    assert (printed.returncode, "[0]" in printed.stdout.splitlines()) == (0, True), "as Apache Kafka's broker 0"
