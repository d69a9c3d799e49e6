"""The files of a cluster of Apache Kafka and Odradek in which two things look wrong, and aren't.

Kafka's group coordinator writes commits with base sequence 0 and no producer id. And broker 2, which led a topic, died
with records that nobody else had; others led on and wrote at the same offsets, and it is no replica any more. Its files
are still there.
"""

from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from chaos.operations import elect_preferred, reassign, reassigning
from odradek.apps.lab.cluster import ChaosCluster
from odradek.apps.pipeline.segment_source.log_directories import read_checkpoint
from odradek.client.broker_client import BrokerClient
from odradek.format.checkpoints import HIGH_WATERMARK_FILE
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.record_batch import NO_TIMESTAMP, build_batch
from odradek.protocol.records import Record
from waiting import eventually

KAFKA, ODRADEK, LEFT = 0, 1, 2
ORDERS = TopicPartition("orders", 0)
OFFSETS = TopicPartition("__consumer_offsets", 0)
COMMITS = 5
PATIENCE_S = 120
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "2",
    "min.insync.replicas": "1",
    "zookeeper.session.timeout.ms": "10000",
    # those that are frozen for a moment stay in the ISR, and can be elected
    "replica.lag.time.max.ms": "60000",
    "replica.high.watermark.checkpoint.interval.ms": "200",
    "replica.socket.timeout.ms": "10000",
}


def leave_files(cluster: ChaosCluster) -> int:
    """Returns how many records the topic has in the end."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    wanted = NewTopic("orders", num_partitions=1, replica_assignment=[[LEFT, KAFKA, ODRADEK]])
    admin.create_topics([wanted])["orders"].result(60)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "log_level": 0})
    _write(producer, 20)
    _commit(cluster, 1)
    reassign(cluster, {OFFSETS: (KAFKA, ODRADEK)})
    eventually(lambda: reassigning(cluster) == 0, PATIENCE_S)
    elect_preferred(cluster)
    eventually(lambda: cluster.leader(OFFSETS) == KAFKA, PATIENCE_S)
    _commit(cluster, COMMITS)
    _die_with_records(cluster)
    eventually(lambda: cluster.leader(ORDERS) in (KAFKA, ODRADEK), PATIENCE_S)
    _write(producer, 20)
    reassign(cluster, {ORDERS: (KAFKA, ODRADEK)})
    eventually(lambda: reassigning(cluster) == 0, PATIENCE_S)
    with_end = _end(cluster)
    for broker in (KAFKA, ODRADEK):
        path = cluster.brokers[broker].log_dir / HIGH_WATERMARK_FILE
        eventually(lambda path=path: read_checkpoint(path).get(ORDERS, 0) == with_end, PATIENCE_S)  # type: ignore[misc]
    return with_end


def _write(producer: Producer, count: int) -> None:
    for number in range(count):
        producer.produce("orders", b"order %d" % number, partition=0)
        assert producer.flush(PATIENCE_S) == 0  # a batch each


def _commit(cluster: ChaosCluster, count: int) -> None:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "shop", "log_level": 0})
    try:
        for offset in range(count):
            consumer.commit(offsets=[Position("orders", 0, offset)], asynchronous=False)
    finally:
        consumer.close()


def _die_with_records(cluster: ChaosCluster) -> None:
    """The first batch answers the fetches that wait at the leader; the second one nobody asks for any more."""
    followers = [cluster.brokers[broker] for broker in (KAFKA, ODRADEK)]
    for follower in followers:
        follower.pause()
    try:
        with BrokerClient(*cluster.brokers[LEFT].address, timeout_ms=10_000) as client:
            for value in (b"maybe", b"lost", b"lost too"):
                records = build_batch([Record(0, NO_TIMESTAMP, None, value)])
                data = TopicProduceData(name="orders", partition_data=[PartitionProduceData(index=0, records=records)])
                answer = client.send(ProduceRequest(acks=1, timeout_ms=5_000, topic_data=[data]))
                assert answer.responses[0].partition_responses[0].error_code == 0
        cluster.brokers[LEFT].kill()
    finally:
        for follower in followers:
            follower.resume()


def _end(cluster: ChaosCluster) -> int:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "end", "log_level": 0})
    try:
        _, end = consumer.get_watermark_offsets(Position("orders", 0), timeout=60)
        return int(end)
    finally:
        consumer.close()


def files_of(cluster: ChaosCluster) -> Path:
    return cluster.brokers[0].log_dir.parent.parent
