"""A real Apache Kafka broker leads, our fetchers follow: the copy has its bytes, its epochs and its log start.

Then Kafka leads in a new epoch, and the copy has a record that Kafka never saw: it goes.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]
from kazoo.client import KazooClient

from apache_kafka import KafkaPeer
from cluster.conftest import COMPRESSIONS
from cluster.own_broker import batch_of
from odradek.base.clock import SYSTEM_CLOCK
from odradek.base.config.broker_config import BrokerConfig
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.core.validation import BatchRules
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.broker.replication.core.followers import LagRules
from odradek.broker.replication.follower.fetch_assignment import FetchAssignment
from odradek.broker.replication.follower.fetcher_manager import ReplicaFetcherManager
from odradek.broker.replication.partition import Partition
from odradek.broker.replication.replication_quota import ReplicationQuotas
from odradek.client.cluster_client import ClusterClient
from odradek.model.topology import Endpoint, LeaderAndIsr, PartitionDirective, TopicPartition
from odradek.model.uuid_text import uuid_from_text
from waiting import eventually

LEADER, FOLLOWER = 0, 9
TP = TopicPartition("followed", 0)
TOPIC_NODE = f"/brokers/topics/{TP.topic}"
STATE_NODE = f"{TOPIC_NODE}/partitions/{TP.partition}/state"
LIMIT_S = 60


class KafkaFollower:
    """Broker 9, to which Kafka's controller has given a replica."""

    def __init__(self, peer: KafkaPeer, topic_id: UUID, directory: Path) -> None:
        self._peer = peer
        self._topic_id = topic_id
        config = BrokerConfig.from_properties({"zookeeper.connect": peer.zookeeper, "broker.id": str(FOLLOWER)})
        self.log = PartitionLog.open(directory / str(TP), TP, LogConfig())
        self._partition = Partition(
            TP, topic_id, self.log, FOLLOWER, clock=SYSTEM_CLOCK, lag_rules=LagRules(30_000, lambda broker: True)
        )
        self.fetchers = ReplicaFetcherManager(
            FOLLOWER,
            config,
            lambda tp: self._partition,
            SYSTEM_CLOCK,
            lambda tp: None,
            broker_epoch=lambda: -1,
            quotas=ReplicationQuotas(FOLLOWER, config, SYSTEM_CLOCK),
        )

    def follow(self, leader_epoch: int) -> None:
        state = LeaderAndIsr(LEADER, leader_epoch, (LEADER,), controller_epoch=1)
        self._partition.become_follower(PartitionDirective(TP, self._topic_id, state, (LEADER, FOLLOWER)))
        host, _, port = self._peer.bootstrap_servers.partition(":")
        endpoint = Endpoint("PLAINTEXT", "PLAINTEXT", host, int(port))
        self.fetchers.follow({TP: FetchAssignment(endpoint, LEADER, leader_epoch, self._topic_id)})

    def until_equal(self, end_offset: int) -> None:
        eventually(lambda: self.log.log_end_offset == end_offset == self._partition.high_watermark, LIMIT_S)
        name = self.log.segments[0].path.name
        theirs = (self._peer.data_dir / str(TP) / name).read_bytes()
        size = self.log.segments[0].size
        assert (self.log.directory / name).read_bytes()[:size] == theirs[:size]
        assert not any(theirs[size:])


@contextmanager
def zookeeper_of(peer: KafkaPeer) -> Iterator[KazooClient]:
    client = KazooClient(peer.zookeeper)
    client.start(LIMIT_S)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def read_node(client: KazooClient, path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(client.get(path)[0])
    return found


def leader_epoch(peer: KafkaPeer, *, above: int) -> int:
    with zookeeper_of(peer) as client:
        eventually(lambda: client.exists(STATE_NODE) and read_node(client, STATE_NODE)["leader"] == LEADER, LIMIT_S)
        eventually(lambda: read_node(client, STATE_NODE)["leader_epoch"] > above, LIMIT_S)
        return int(read_node(client, STATE_NODE)["leader_epoch"])


def known_leader_epoch(peer: KafkaPeer) -> int:
    """The epoch that the broker itself has heard of; the controller writes it to ZooKeeper before."""
    with ClusterClient(peer.bootstrap_servers) as client:
        return client.topics([TP.topic])[TP.topic].partitions[TP.partition].leader_epoch


def elect_again(peer: KafkaPeer) -> None:
    """A new controller finds the partition without a leader, and makes the same broker lead in a new epoch."""
    with zookeeper_of(peer) as client:
        client.set(STATE_NODE, json.dumps(read_node(client, STATE_NODE) | {"leader": -1}).encode())
        client.delete("/controller")


def create_topic(peer: KafkaPeer) -> UUID:
    """With a replica on a broker that isn't there: only the znode says so to the controller."""
    with zookeeper_of(peer) as client:
        partitions = {str(TP.partition): [LEADER, FOLLOWER]}
        node = {"version": 2, "partitions": partitions, "adding_replicas": {}, "removing_replicas": {}}
        client.create(TOPIC_NODE, json.dumps(node).encode())
        eventually(lambda: "topic_id" in read_node(client, TOPIC_NODE), LIMIT_S)
        return uuid_from_text(read_node(client, TOPIC_NODE)["topic_id"])


def produce(peer: KafkaPeer, count: int, **settings: object) -> None:
    producer = Producer({"bootstrap.servers": peer.bootstrap_servers, "linger.ms": 5} | settings)
    for number in range(count):
        producer.produce(TP.topic, b"%d " % number * 20, partition=TP.partition)
    assert producer.flush(LIMIT_S) == 0


def test_the_copy_of_a_log_that_kafka_leads_is_the_same(kafka_lib: Path, tmp_path: Path) -> None:
    peer = KafkaPeer(kafka_lib, tmp_path)
    peer.start()
    follower = None
    try:
        follower = KafkaFollower(peer, create_topic(peer), tmp_path / "follower")
        first_epoch = leader_epoch(peer, above=-1)
        follower.follow(first_epoch)
        for compression in COMPRESSIONS:
            produce(peer, 200, **{"compression.type": compression, "enable.idempotence": True})
        end = 200 * len(COMPRESSIONS)
        follower.until_equal(end)

        admin = AdminClient({"bootstrap.servers": peer.bootstrap_servers})
        admin.delete_records([Place(TP.topic, TP.partition, 150)], operation_timeout=LIMIT_S)
        eventually(lambda: follower.log.log_start_offset == 150, LIMIT_S)

        follower.fetchers.unfollow([TP])
        follower.log.append_as_leader(
            memoryview(bytearray(batch_of(b"nobody else has this"))), leader_epoch=first_epoch, rules=BatchRules()
        )
        elect_again(peer)
        epoch = leader_epoch(peer, above=first_epoch)
        eventually(lambda: known_leader_epoch(peer) == epoch, LIMIT_S)  # no record is of the first epoch any more
        follower.follow(epoch)
        produce(peer, 10)
        follower.until_equal(end + 10)
    finally:
        if follower is not None:
            follower.fetchers.stop()
        peer.stop()
