"""Records that are gone before a stream has read them: `format("odradek")` does what Spark's own connector does."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
)

from cluster.own_broker import OwnBroker, running
from waiting import eventually

from .test_spark_connector import connector_environment

__all__ = ["connector_environment"]
pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

SCRIPT = Path(__file__).parent / "loss_flows.py"
CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
DAY_MS = 24 * 60 * 60 * 1000
TOPICS = ("taken", "emptied", "anew")


class Reader:
    """Streams of one data source, in a process of its own."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, topic: str, *, strict: bool) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{topic} {'true' if strict else 'false'}\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        assert answer, "it ended"
        return json.loads(answer)


@contextmanager
def reader(python: Path, work: Path, *arguments: object) -> Iterator[Reader]:
    work.mkdir()
    format, bootstrap, *package = arguments
    command = [str(word) for word in (python, SCRIPT, format, bootstrap, work, *package)]
    environment = os.environ | {"PYSPARK_PYTHON": str(python)}
    with (work / "log").open("w") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
        )
    try:
        yield Reader(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)


class Topics:
    def __init__(self, bootstrap: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._bootstrap = bootstrap

    def create(self, name: str) -> None:
        # a segment for each batch: retention takes segments
        config = {"retention.ms": "-1", "segment.bytes": "200"}
        self._admin.create_topics([NewTopic(name, 1, 1, config=config)])[name].result(30)

    def write(self, name: str, numbers: range, *, days_ago: int = 0) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "log_level": 0})
        at = int(time.time() * 1000) - days_ago * DAY_MS
        for number in numbers:
            producer.produce(name, str(number), partition=0, timestamp=at)
            assert producer.flush(60) == 0

    def keep_days(self, name: str, days: int, first: int) -> None:
        """Until retention has taken everything before the offset."""
        entry = ConfigEntry("retention.ms", str(days * DAY_MS), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[entry])
        for future in self._admin.incremental_alter_configs([resource]).values():
            future.result(30)
        eventually(lambda: self._earliest(name) == first, within_s=120)

    def make_anew(self, name: str) -> None:
        self._admin.delete_topics([name])[name].result(30)

        def create() -> bool:
            try:
                self.create(name)
            except KafkaException as error:  # the old one is on its way out
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
                return False
            return True

        eventually(create)

    def _earliest(self, name: str) -> int:
        spec = {TopicPartition(name, 0): OffsetSpec.earliest()}  # type: ignore[no-untyped-call]
        (future,) = self._admin.list_offsets(spec).values()
        return int(future.result(30).offset)


def test_retention_and_a_topic_made_anew(connector_environment: Path, zookeeper: str, tmp_path: Path) -> None:
    (tmp_path / "loss").mkdir()
    with ExitStack() as stack:
        broker = OwnBroker(tmp_path / "loss", zookeeper, log_retention_check_interval_ms="300")
        stack.enter_context(running(broker))
        package = (CONNECTOR, connector_environment / "ivy")
        python = connector_environment / "bin/python"
        kafka = stack.enter_context(reader(python, tmp_path / "kafka", "kafka", broker.bootstrap, *package))
        ours = stack.enter_context(reader(Path(sys.executable), tmp_path / "ours", "odradek", broker.bootstrap))
        topics = Topics(broker.bootstrap)

        def both(topic: str, *, strict: bool) -> Any:
            for asked in (kafka, ours):
                asked.ask(topic, strict=strict)
            wanted, found = kafka.answer(), ours.answer()
            assert found == wanted, f"{topic}, {strict}: the connector reads {wanted}"
            return found

        for topic in TOPICS:
            topics.create(topic)
            topics.write(topic, range(5), days_ago=9)
            assert both(topic, strict=True) == numbers(0, 5)
            topics.write(topic, range(5, 8), days_ago=9)
            if topic != "emptied":
                topics.write(topic, range(8, 10))
        topics.keep_days("taken", 2, first=8)
        topics.keep_days("emptied", 2, first=8)
        topics.make_anew("anew")
        topics.write("anew", range(100, 103))

        for topic in TOPICS:
            assert both(topic, strict=True) == "failed", topic
        assert both("taken", strict=False) == numbers(8, 10)
        assert both("emptied", strict=False) == []
        assert both("anew", strict=False) == [], "the offsets that it stood at are not reached yet"
        for topic in TOPICS:
            topics.write(topic, range(200, 205))
            assert both(topic, strict=True) == numbers(200, 205), topic


def numbers(start: int, end: int) -> list[str]:
    return [str(number) for number in range(start, end)]
