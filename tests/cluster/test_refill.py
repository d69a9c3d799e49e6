"""A fresh machine takes a dead broker's id: it refills its partitions, also where a log begins inside of a batch."""

import shutil
from pathlib import Path

from odradek.client.broker_client import BrokerClient
from odradek.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from odradek.protocol.record_batch import read_header
from waiting import eventually

from .own_broker import OwnBroker, batch_of, produce
from .own_cluster import PATIENCE_S, running_cluster

TOPIC = "refilled"
LEADER, FOLLOWER = 0, 1
PER_BATCH = 10
FIRST_KEPT = 155  # in the middle of the batch that begins at 150


def write_batches(client: BrokerClient, count: int) -> None:
    for number in range(count):
        values = [b"%d/%d" % (number, n) for n in range(PER_BATCH)]
        assert produce(client, TOPIC, batch_of(*values)).error_code == 0


def delete_before(client: BrokerClient, offset: int) -> None:
    partitions = [DeleteRecordsPartition(partition_index=0, offset=offset)]
    topics = [DeleteRecordsTopic(name=TOPIC, partitions=partitions)]
    answer = client.send(DeleteRecordsRequest(topics=topics, timeout_ms=PATIENCE_S * 1000))
    (result,) = answer.topics[0].partitions
    assert (result.error_code, result.low_watermark) == (0, offset)


def log_of(broker: OwnBroker) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(broker.partition_dir(TOPIC).glob("*.log")))


def test_a_fresh_machine_with_a_dead_brokers_id_refills_its_partitions(tmp_path: Path, zookeeper: str) -> None:
    with running_cluster(tmp_path, zookeeper, brokers=2) as cluster:
        cluster.create_topic(TOPIC, (LEADER, FOLLOWER))
        cluster.await_isr(TOPIC, [LEADER, FOLLOWER])
        with cluster.client(LEADER) as client:
            write_batches(client, 30)
            delete_before(client, FIRST_KEPT)
            cluster.kill(FOLLOWER)
            cluster.await_isr(TOPIC, [LEADER])
            for directory in cluster.brokers[FOLLOWER].log_dirs:
                shutil.rmtree(directory)
            write_batches(client, 5)
            cluster.restart(FOLLOWER)
            cluster.await_isr(TOPIC, [LEADER, FOLLOWER])

            write_batches(client, 1)
        ours, theirs = cluster.brokers[FOLLOWER], cluster.brokers[LEADER]
        eventually(lambda: log_of(theirs).endswith(log_of(ours)), PATIENCE_S)
        assert read_header(log_of(ours)).base_offset == FIRST_KEPT // PER_BATCH * PER_BATCH
        assert log_of(ours).count(b"/9") == (360 - 150) // PER_BATCH
