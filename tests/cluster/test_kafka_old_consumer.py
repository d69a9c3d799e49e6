"""Kafka 1.1's own ZooKeeper consumer and ours, members of one group: they share a topic, and take over from each other.

Among the soaks, because its jars (20 MB) come from Maven.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from apache_kafka import jars_of
from java_program import java
from obtaining import skipped_if_unobtainable
from odradek.apps.legacy.consumer import ZooKeeperConsumer
from odradek.apps.legacy.member import MemberSettings
from odradek.client.record_reader import records_in
from odradek.protocol.messages.list_offsets import EARLIEST
from odradek.testing import OdradekCluster
from waiting import eventually

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

PARTITIONS = 6
PATIENCE_S = 90


@pytest.fixture(scope="module")
def jars() -> Path:
    with skipped_if_unobtainable():
        return jars_of("kafka-1.1", "ODRADEK_KAFKA_1_1_LIB")


@contextmanager
def kafkas_consumer(jars: Path, directory: Path, zookeeper: str, topic: str, group: str) -> Iterator[Path]:
    """It runs while this is entered; the file is where it writes the values that it reads."""
    settings = directory / "consumer.properties"
    settings.write_text(f"group.id={group}\nauto.offset.reset=smallest\nauto.commit.interval.ms=1000\n")
    arguments = ["--zookeeper", zookeeper, "--topic", topic, "--consumer.config", settings]
    values = directory / "values"
    with java(f"{jars}/*", values, "kafka.tools.ConsoleConsumer", *arguments):
        yield values


def test_both_kinds_share_a_group(
    jars: Path, tmp_path: Path, odradek_cluster: OdradekCluster, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(PARTITIONS)
    settings = MemberSettings(
        zookeeper_session_timeout_ms=30_000, zookeeper_connection_timeout_ms=30_000, auto_offset_reset=EARLIEST
    )
    producer = Producer({"bootstrap.servers": odradek_cluster.bootstrap_servers, "acks": "all", "log_level": 0})

    def produce(values: range) -> None:
        for value in values:
            producer.produce(topic, str(value).encode(), partition=value % PARTITIONS)
        assert producer.flush(PATIENCE_S) == 0

    with ZooKeeperConsumer(odradek_cluster.zookeeper, topic, [topic], settings=settings) as ours:
        eventually(lambda: len(ours.owned) == PARTITIONS, PATIENCE_S)
        with kafkas_consumer(jars, tmp_path, odradek_cluster.zookeeper, topic, topic) as output:
            eventually(lambda: len(ours.owned) == PARTITIONS // 2, PATIENCE_S)
            produce(range(60))
            mine: set[int] = set()

            def theirs() -> set[int]:
                return {int(line) for line in output.read_text().split()}

            def all_read() -> bool:
                mine.update(int(record.value or b"") for batch in ours.poll() for record in records_in(batch))
                return mine | theirs() == set(range(60))

            eventually(all_read, PATIENCE_S)
            assert len(mine) == len(theirs()) == 30
        eventually(lambda: len(ours.owned) == PARTITIONS, PATIENCE_S)
        produce(range(60, 120))

        def the_rest_read() -> bool:
            mine.update(int(record.value or b"") for batch in ours.poll() for record in records_in(batch))
            return set(range(60, 120)) <= mine

        eventually(the_rest_read, PATIENCE_S)
        # what Kafka's consumer had read and committed was not read again
        assert mine.isdisjoint(theirs())
