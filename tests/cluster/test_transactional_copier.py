"""Kafka's TransactionalMessageCopier, as Kafka's system test runs it.

Copiers read a topic and write it to another, offsets and records in one transaction, with aborts at random. Meanwhile
brokers or copiers are killed, or stopped cleanly. In the end each partition has every record once, in order.
"""

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position

from apache_kafka import kafka_jars
from java_program import java
from odradek.model.topic_names import TRANSACTIONS_TOPIC
from waiting import eventually

from .conftest import unused_name
from .own_cluster import OwnCluster, running_cluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"
PARTITIONS = 2
RECORDS = 6_000
TRANSACTION_SIZE, TRANSACTION_TIMEOUT_MS = 100, 10_000
PATIENCE_S = 120
PROGRESS = 500
"""Records that have to be copied between two faults."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, zookeeper: str) -> Iterator[OwnCluster]:
    settings = {
        "transaction_state_log_num_partitions": "3",
        "transaction_state_log_replication_factor": "3",
        "transaction_state_log_min_isr": "2",
        "group_initial_rebalance_delay_ms": "0",
    }
    with running_cluster(tmp_path_factory.mktemp("copier"), zookeeper, **settings) as running:
        yield running


def copier(cluster: OwnCluster, source: str, target: str, partition: int, group: str) -> tuple[object, ...]:
    options = {
        "--broker-list": cluster.bootstrap,
        "--input-topic": source,
        "--input-partition": partition,
        "--output-topic": target,
        "--max-messages": RECORDS,
        "--consumer-group": group,
        "--transaction-size": TRANSACTION_SIZE,
        "--transaction-timeout": TRANSACTION_TIMEOUT_MS,
        "--transactional-id": f"copier-{group}-{partition}",
    }
    return (COPIER, *(word for option in options.items() for word in option), "--enable-random-aborts")


class Copying:
    """A copier for each partition; one that ends too early, as one that is struck does, is started again."""

    def __init__(self, cluster: OwnCluster, source: str, target: str, jars: Path, directory: Path) -> None:
        self._words = [copier(cluster, source, target, each, target) for each in range(PARTITIONS)]
        self._jars, self._directory = jars, directory
        self._stopped = threading.Event()
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * PARTITIONS
        self._threads = [threading.Thread(target=self._keep, args=(each,)) for each in range(PARTITIONS)]
        self.starts = [0] * PARTITIONS

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self.strike(subprocess.Popen.kill)
        for thread in self._threads:
            thread.join()

    def strike(self, how: Callable[[subprocess.Popen[bytes]], None]) -> None:
        for process in self._processes:
            if process is not None:
                how(process)

    def join(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "the copier does not get on"

    def _keep(self, partition: int) -> None:
        while not self._stopped.is_set():
            self.starts[partition] += 1
            printed = self._directory / f"copier-{partition}-{self.starts[partition]}"
            with java(f"{self._jars}/*", printed, *self._words[partition]) as process:
                self._processes[partition] = process
                process.wait()
                if _is_finished(printed):
                    return


def _is_finished(printed: Path) -> bool:
    """It tells its progress in JSON, a line after each transaction and one at its end."""
    try:
        last = json.loads(printed.read_text().rstrip().rpartition("\n")[2])
    except ValueError:
        return False  # killed before its first line, or amid one
    return bool(last["stage"] == "ShutdownComplete" and last["remaining"] == 0)


@contextmanager
def copying(cluster: OwnCluster, source: str, target: str, directory: Path) -> Iterator[Copying]:
    running = Copying(cluster, source, target, kafka_jars(), directory)
    running.start()
    try:
        yield running
    finally:
        running.stop()


def fill(cluster: OwnCluster, topic: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "log_level": 0})
    for number in range(RECORDS):
        for partition in range(PARTITIONS):
            producer.produce(topic, str(number).encode(), partition=partition)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0


def committed(cluster: OwnCluster, topic: str, partition: int) -> list[int]:
    """The records that a reader of committed ones gets, to the end of the partition."""
    reading = {"group.id": unused_name(), "isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "log_level": 0, **reading})
    consumer.assign([Position(topic, partition, 0)])
    found: list[int] = []
    try:
        while True:
            record = consumer.poll(PATIENCE_S)
            assert record is not None
            if record.error() is not None:
                return found
            value = record.value()
            assert isinstance(value, bytes)
            found.append(int(value))
    finally:
        consumer.close()


def end_of(cluster: OwnCluster, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": unused_name(), "log_level": 0})
    try:
        return sum(consumer.get_watermark_offsets(Position(topic, each), PATIENCE_S)[1] for each in range(PARTITIONS))
    finally:
        consumer.close()


def bounce_brokers(cluster: OwnCluster, copiers: Copying, topic: str, *, clean: bool) -> None:
    for broker in range(3):
        before = end_of(cluster, topic)
        if clean:
            cluster.brokers[broker].stop()
        else:
            cluster.kill(broker)
        cluster.restart(broker)
        for each in (topic, TRANSACTIONS_TOPIC):
            cluster.await_isr(each, (0, 1, 2))
        eventually(lambda before=before: end_of(cluster, topic) >= min(before + PROGRESS, RECORDS), PATIENCE_S)  # type: ignore[misc]


def bounce_clients(cluster: OwnCluster, copiers: Copying, topic: str, *, clean: bool) -> None:
    for _ in range(3):
        before = end_of(cluster, topic)
        eventually(lambda before=before: end_of(cluster, topic) >= min(before + PROGRESS, RECORDS), PATIENCE_S)  # type: ignore[misc]
        copiers.strike(subprocess.Popen.terminate if clean else subprocess.Popen.kill)


@pytest.mark.parametrize("bounce", [bounce_brokers, bounce_clients])
@pytest.mark.parametrize("clean", [False, True], ids=["hard", "clean"])
def test_every_record_is_copied_once_and_in_order(
    cluster: OwnCluster, tmp_path: Path, bounce: Callable[..., None], clean: bool
) -> None:
    source, target = unused_name(), unused_name()
    for topic in (source, target):
        cluster.create_topic(topic, (0, 1, 2), (1, 2, 0), min_insync_replicas="2")
    fill(cluster, source)
    with copying(cluster, source, target, tmp_path) as copiers:
        eventually(lambda: end_of(cluster, target) >= PROGRESS, PATIENCE_S)
        bounce(cluster, copiers, target, clean=clean)
        copiers.join()
    for partition in range(PARTITIONS):
        assert committed(cluster, target, partition) == list(range(RECORDS))
