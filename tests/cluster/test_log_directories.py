"""Brokers with several log directories: Kafka's own tools move replicas between them, and disks fail."""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from kafka_tools import KafkaTools
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponsePartition
from waiting import eventually

from .own_broker import OwnBroker, batch_of, produce, read_all, running
from .own_cluster import PATIENCE_S, OwnCluster, running_cluster
from .test_cluster import Writer
from .test_cluster import read_all as read_numbers

CHUNK = b"x" * 16_000
CHUNKS = 60  # more than a move finishes in one go
NEXT_TO_NOTHING = 1000  # bytes a second
PLENTY = 1_000_000_000


class Operator:
    """Moves orders-0 of a broker with Kafka's tools."""

    def __init__(self, broker: OwnBroker, tools: KafkaTools, directory: Path) -> None:
        self._broker = broker
        self._tools = tools
        self._plan = directory / "plan.json"

    def move(self, target: Path, throttle: int) -> None:
        partition = {"topic": "orders", "partition": 0, "replicas": [0], "log_dirs": [str(target)]}
        self._plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
        printed = self._reassign("--execute", "--additional", "--replica-alter-log-dirs-throttle", throttle)
        assert f"Successfully started moving log directory to {target} for replica orders-0 with broker 0" in printed

    def throttle_from_the_start(self, throttle: int) -> None:
        """Before the broker starts, so that no move can be quicker than the news of its throttle."""
        limit = f"replica.alter.log.dirs.io.max.bytes.per.second={throttle}"
        entity = ("--entity-type", "brokers", "--entity-name", 0)
        printed = self._tools.run(
            "kafka-configs", "--bootstrap-server", self._broker.bootstrap, *entity, "--alter", "--add-config", limit
        )
        assert printed.status == 0, printed.text
        self._broker.kill()
        self._broker.start()

    def verify(self) -> str:
        return self._reassign("--verify")

    def _reassign(self, *options: object) -> str:
        plan = ("--reassignment-json-file", self._plan)
        printed = self._tools.run(
            "kafka-reassign-partitions", "--bootstrap-server", self._broker.bootstrap, *plan, *options
        )
        assert printed.status == 0, printed.text
        return printed.text

    def replicas(self) -> dict[str, tuple[bool, int]]:
        """Directory → whether the replica there is a future one, and how far it is behind."""
        printed = self._tools.run(
            "kafka-log-dirs", "--bootstrap-server", self._broker.bootstrap, "--describe", "--topic-list", "orders"
        )
        assert printed.status == 0, printed.text
        (line,) = [line for line in printed.text.splitlines() if line.startswith("{")]
        (broker,) = json.loads(line)["brokers"]
        assert all(directory["error"] is None for directory in broker["logDirs"])
        return {
            directory["logDir"]: (replica["isFuture"], replica["offsetLag"])
            for directory in broker["logDirs"]
            for replica in directory["partitions"]
        }


@pytest.fixture
def operator(two_disks: OwnBroker, kafka_tools: KafkaTools, tmp_path: Path) -> Operator:
    return Operator(two_disks, kafka_tools, tmp_path)


@pytest.fixture
def two_disks(tmp_path: Path, zookeeper: str) -> Iterator[OwnBroker]:
    log_dirs = f"{tmp_path}/disk-a,{tmp_path}/disk-b"
    with running(OwnBroker(tmp_path, zookeeper, log_dirs=log_dirs)) as broker:
        broker.create_topic("orders")
        yield broker


def write(broker: OwnBroker, first: int, count: int) -> None:
    with broker.client() as client:
        for number in range(first, first + count):
            assert produce(client, "orders", batch_of(b"%d " % number + CHUNK)).error_code == 0


def numbers(broker: OwnBroker) -> list[int]:
    with broker.client() as client:
        return [int(value.split()[0]) for _, value in read_all(client, "orders")]


def test_kafkas_tools_move_a_replica(two_disks: OwnBroker, operator: Operator) -> None:
    broker = two_disks
    write(broker, 0, CHUNKS)
    here = broker.partition_dir("orders").parent
    (there,) = (directory for directory in broker.log_dirs if directory != here)

    operator.throttle_from_the_start(NEXT_TO_NOTHING)
    operator.move(there, NEXT_TO_NOTHING)
    told = operator.replicas()
    assert told[str(here)] == (False, 0)
    is_future, lag = told[str(there)]
    assert is_future
    assert lag > 0
    assert "is still in progress" in operator.verify()

    broker.kill()
    broker.start()
    write(broker, CHUNKS, 1)
    assert operator.replicas()[str(there)][0], "it goes on after a crash"

    operator.move(here, NEXT_TO_NOTHING)
    assert operator.replicas() == {str(here): (False, 0)}, "it is cancelled"

    writing = Thread(target=write, args=(broker, CHUNKS + 1, CHUNKS))
    writing.start()
    operator.move(there, PLENTY)
    eventually(lambda: operator.replicas() == {str(there): (False, 0)}, PATIENCE_S)
    assert "Reassignment of replica orders-0-0 completed successfully." in operator.verify()
    writing.join(PATIENCE_S)
    assert not writing.is_alive()
    everything = list(range(2 * CHUNKS + 1))
    assert numbers(broker) == everything

    broker.kill()
    broker.start()
    assert broker.partition_dir("orders").parent == there
    assert numbers(broker) == everything
    assert "move failed, retrying" not in broker.log


def test_a_failed_disk_costs_its_leaders_alone_and_the_last_one_the_broker(tmp_path: Path, zookeeper: str) -> None:
    settings = {"replica_high_watermark_checkpoint_interval_ms": "200"}
    with running_cluster(tmp_path, zookeeper, brokers=2, disks=2, **settings) as cluster:
        cluster.create_topic("orders", (0, 1), (0, 1))
        writers = [Writer(cluster, "orders"), Writer(cluster, "orders")]
        for number, writer in enumerate(writers):
            writer.write(50, number)
            cluster.await_isr("orders", (0, 1), number)
        broker = cluster.brokers[0]
        disks = [broker.partition_dir("orders", number).parent for number in (0, 1)]
        assert disks[0] != disks[1]

        unmount(disks[0])
        writers[0].write(50, 0)  # the next checkpoint finds no directory
        assert cluster.await_leader_other_than(0, "orders", 0) == 1
        cluster.await_isr("orders", (1,), 0)
        eventually(lambda: described(cluster, 0).offline_replicas == [0], PATIENCE_S)
        for number, writer in enumerate(writers):
            writer.write(50, number)
        assert cluster.leader("orders", 1) == 0, "the other disk is well"
        assert described(cluster, 1).offline_replicas == []

        unmount(disks[1])
        writers[1].write(50, 1)
        assert broker.exit_code(PATIENCE_S) == 1
        assert cluster.await_leader_other_than(0, "orders", 1) == 1

        for disk in disks:
            unmounted(disk).rename(disk)
        cluster.restart(0)
        for number, writer in enumerate(writers):
            cluster.await_isr("orders", (0, 1), number)
            writer.write(10, number)
            assert (
                read_numbers(cluster, "orders", number) == writer.acknowledged == list(range(len(writer.acknowledged)))
            )
        assert [len(writer.acknowledged) for writer in writers] == [160, 160]


def unmounted(disk: Path) -> Path:
    return disk.with_name(f"{disk.name}-unmounted")


def unmount(disk: Path) -> None:
    disk.rename(unmounted(disk))


def described(cluster: OwnCluster, partition: int) -> MetadataResponsePartition:
    """By the broker whose disks are well."""
    with cluster.client(1) as client:
        answer = client.send(MetadataRequest(topics=None))
    (topic,) = [topic for topic in answer.topics if topic.name == "orders"]
    return next(found for found in topic.partitions if found.partition_index == partition)
