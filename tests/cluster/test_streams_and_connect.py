"""Kafka Streams and Kafka Connect on three brokers: topics that they make for themselves, state that survives in them.

Among the soaks, because their jars (90 MB) come from Maven.
"""

import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec  # type: ignore[attr-defined]

from apache_kafka import jars_of
from java_program import java
from obtaining import skipped_if_unobtainable
from waiting import eventually

from .own_cluster import OwnCluster, running_cluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

PARTITIONS = 3
PATIENCE_S = 120
CONNECT = "org.apache.kafka.connect.cli.ConnectStandalone"
SOURCE = Path(__file__).parents[1] / "streams" / "WordCount.java"
LINES = ["all streams lead to kafka", "hello kafka streams", "join kafka summit"] * 30


@pytest.fixture(scope="module")
def jars() -> Path:
    with skipped_if_unobtainable():
        return jars_of("streams", "ODRADEK_STREAMS_LIB")


@pytest.fixture
def cluster(tmp_path: Path, zookeeper: str) -> Iterator[OwnCluster]:
    with running_cluster(tmp_path / "three", zookeeper, group_initial_rebalance_delay_ms="0") as cluster:
        yield cluster


def last_line(file: Path) -> str:
    return file.read_text().rpartition("\n")[0].rpartition("\n")[2]


def counted(lines: list[str]) -> str:
    words = Counter(word for line in lines for word in line.split())
    return " ".join(f"{word}={count}" for word, count in sorted(words.items()))


def write(cluster: OwnCluster, topic: str, lines: list[str]) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    for line in lines:
        producer.produce(topic, line.encode())
    assert producer.flush(PATIENCE_S) == 0


def test_a_word_count_outlives_its_machine_and_a_broker(jars: Path, cluster: OwnCluster, tmp_path: Path) -> None:
    cluster.create_topic("lines", (0, 1, 2), (1, 2, 0), (2, 0, 1))
    write(cluster, "lines", LINES)
    subprocess.run(["javac", "-cp", f"{jars}/*", "-d", tmp_path, SOURCE], check=True, timeout=PATIENCE_S)
    arguments = ("WordCount", cluster.bootstrap, "lines", "counting")
    class_path, first, second = f"{tmp_path}:{jars}/*", tmp_path / "first", tmp_path / "second"
    with java(class_path, first, *arguments, tmp_path / "state-1") as machine:
        eventually(lambda: last_line(first) == counted(LINES), PATIENCE_S)
        # what it hasn't committed it would rightly count again
        eventually(lambda: uncommitted(cluster, "lines", "counting-counts-repartition") == 0, PATIENCE_S)
        machine.kill()
    shutil.rmtree(tmp_path / "state-1")
    cluster.kill(0)
    write(cluster, "lines", ["after the death of a machine"])
    with java(class_path, second, *arguments, tmp_path / "state-2"):
        eventually(lambda: last_line(second) == counted([*LINES, "after the death of a machine"]), PATIENCE_S)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        changelog = ConfigResource(ConfigResource.Type.TOPIC, "counting-counts-changelog")
        assert admin.describe_configs([changelog])[changelog].result(60)["cleanup.policy"].value == "compact"
        eventually(lambda: records_left(admin, "counting-counts-repartition") == 0, PATIENCE_S)


def test_words_are_counted_exactly_once_while_machines_and_brokers_die(
    jars: Path, cluster: OwnCluster, tmp_path: Path
) -> None:
    """Kafka Streams with exactly_once_v2: transactions over inputs, repartitioning, changelog and offsets."""
    cluster.create_topic("lines", (0, 1, 2), (1, 2, 0), (2, 0, 1))
    subprocess.run(["javac", "-cp", f"{jars}/*", "-d", tmp_path, SOURCE], check=True, timeout=PATIENCE_S)
    arguments = ("WordCount", cluster.bootstrap, "lines", "counting")
    class_path, first, second = f"{tmp_path}:{jars}/*", tmp_path / "first", tmp_path / "second"
    write(cluster, "lines", LINES)
    with java(class_path, first, *arguments, tmp_path / "state-1", "exactly_once_v2") as machine:
        eventually(lambda: last_line(first) == counted(LINES), PATIENCE_S)
        write(cluster, "lines", LINES)
        eventually(lambda: last_line(first) != counted(LINES), PATIENCE_S)
        machine.kill()  # amid the second half, wherever it is
    cluster.kill(0)
    write(cluster, "lines", LINES)
    with java(class_path, second, *arguments, tmp_path / "state-1", "exactly_once_v2"):
        eventually(lambda: last_line(second) == counted(LINES * 3), PATIENCE_S)
        write(cluster, "lines", ["the end"])
        eventually(lambda: last_line(second) == counted([*LINES * 3, "the end"]), PATIENCE_S)


def uncommitted(cluster: OwnCluster, *topics: str) -> int:
    """Return the number of records that the counting group has not committed."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "counting", "log_level": 0})
    try:
        places = [TopicPartition(topic, partition) for topic in topics for partition in range(PARTITIONS)]
        return sum(
            consumer.get_watermark_offsets(place, timeout=30)[1] - max(place.offset, 0)
            for place in consumer.committed(places, timeout=30)
        )
    finally:
        consumer.close()


def records_left(admin: AdminClient, topic: str) -> int:
    """Streams deletes what it has counted from the topic that it repartitions through."""
    places = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    ends = []
    for spec in (OffsetSpec.earliest(), OffsetSpec.latest()):
        answers = admin.list_offsets(dict.fromkeys(places, spec), request_timeout=30)
        ends.append(sum(answer.result(60).offset for answer in answers.values()))
    return int(ends[1] - ends[0])


def test_connect_copies_a_file_and_goes_on_where_it_was(jars: Path, cluster: OwnCluster, tmp_path: Path) -> None:
    cluster.create_topic("copied", (0, 1, 2))
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    (tmp_path / "worker.properties").write_text(
        f"bootstrap.servers={cluster.bootstrap}\n"
        "key.converter=org.apache.kafka.connect.storage.StringConverter\n"
        "value.converter=org.apache.kafka.connect.storage.StringConverter\n"
        f"offset.storage.file.filename={tmp_path}/offsets\noffset.flush.interval.ms=500\nlisteners=http://127.0.0.1:0\n"
    )
    (tmp_path / "source.properties").write_text(
        f"name=source\nconnector.class=FileStreamSource\nfile={source}\ntopic=copied\n"
    )
    (tmp_path / "sink.properties").write_text(
        f"name=sink\nconnector.class=FileStreamSink\nfile={sink}\ntopics=copied\n"
    )
    settings = [tmp_path / f"{name}.properties" for name in ("worker", "source", "sink")]
    for part in range(2):
        with source.open("a") as lines:
            lines.writelines(f"{part}-{number}\n" for number in range(500))
        with java(f"{jars}/*", tmp_path / f"connect-{part}", CONNECT, *settings):
            eventually(lambda: sink.exists() and sink.read_text() == source.read_text(), PATIENCE_S)
