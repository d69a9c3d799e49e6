"""Leaders that go home by themselves (row A11), and consumers that read from the replica in their own rack (row B6)."""

import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka import TopicPartition as Position

from chaos.clients import await_condition
from chaos.operations import ask_controller
from odradek.apps.lab.cluster import ChaosCluster
from odradek.base.errors import ErrorCode
from odradek.local.zookeeper_server import free_port
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest

pytestmark = pytest.mark.timeout(300)
TP = TopicPartition("orders", 0)
RECORDS = 500


def create(cluster: ChaosCluster, *replicas: int) -> None:
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=list(replicas))
    topic = CreatableTopic(name=TP.topic, num_partitions=-1, replication_factor=-1, assignments=[assignment])

    def created() -> bool:
        """Not before the controller has seen every broker of the assignment."""
        answer = ask_controller(cluster, CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
        return answer.topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)

    assert await_condition(created, 60)


def in_sync(cluster: ChaosCluster, leader: int, isr: set[int]) -> bool:
    views = cluster.views(TP)
    return len(views) == 1 and next(iter(views))[0] == leader and next(iter(views))[2] == isr


def test_a_leader_goes_home_by_itself(tmp_path: Path, zookeeper: str) -> None:
    settings = {"auto.leader.rebalance.enable": "true", "leader.imbalance.check.interval.seconds": "2"}
    with ChaosCluster(tmp_path / "rebalance", zookeeper, brokers=2, settings=settings) as cluster:
        create(cluster, 0, 1)
        assert await_condition(lambda: in_sync(cluster, 0, {0, 1}), 60)
        cluster.brokers[0].kill()
        assert await_condition(lambda: cluster.leader(TP) == 1, 60)
        cluster.start(0)
        assert await_condition(lambda: in_sync(cluster, 0, {0, 1}), 90)


def bytes_out(port: int) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    name = f'kafka_server_brokertopicmetrics_bytesout_total{{topic="{TP.topic}"}} '
    return float(next((line[len(name) :] for line in text.splitlines() if line.startswith(name)), 0))


def consume(bootstrap: str, settings: Mapping[str, str]) -> int:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "readers",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "log_level": 0,
            **settings,
        }
    )
    consumer.assign([Position(TP.topic, TP.partition, 0)])
    count, ended = 0, False

    def read_on() -> bool:
        nonlocal count, ended
        for message in consumer.consume(1000, 1.0):
            error = message.error()
            count += error is None
            ended = ended or (error is not None and error.code() == KafkaError._PARTITION_EOF)
        return ended and count >= RECORDS

    try:
        assert await_condition(read_on, 60)
    finally:
        consumer.close()
    return count


def test_a_consumer_reads_in_its_own_rack(tmp_path: Path, zookeeper: str) -> None:
    selector = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    cluster = ChaosCluster(tmp_path / "racks", zookeeper, brokers=2, settings={**selector, "min.insync.replicas": "1"})
    ports = [free_port() for _ in cluster.brokers]
    for broker, port in zip(cluster.brokers, ports, strict=True):
        with broker.properties.open("a") as properties:
            properties.write(f"broker.rack=rack-{broker.id}\nodradek.metrics.port={port}\n")
    with cluster:
        create(cluster, 0, 1)
        assert await_condition(lambda: in_sync(cluster, 0, {0, 1}), 60)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
        for number in range(RECORDS):
            producer.produce(TP.topic, f"record {number}", partition=0)
        assert producer.flush(60) == 0
        assert consume(cluster.bootstrap, {"client.rack": "rack-1"}) == RECORDS
        assert bytes_out(ports[1]) > RECORDS * len("record 0")
