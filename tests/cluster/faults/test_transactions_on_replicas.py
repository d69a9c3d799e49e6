"""Transactions and the death of leaders: every replica knows the same of them, readers see whole transactions alone."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as Position

from odradek.protocol.isolation import IsolationLevel
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from waiting import eventually

from ..own_cluster import OwnCluster, running_cluster

pytestmark = pytest.mark.timeout(300)

TOPIC, PATIENCE_S = "payments", 60
RECORDS = 20
FETCH_WITH_NAMES = 12


def test_a_leader_dies_within_a_transaction_and_returns(tmp_path: Path, zookeeper: str) -> None:
    settings = {"transaction_state_log_num_partitions": "3", "transaction_state_log_min_isr": "2"}
    with running_cluster(tmp_path / "transactions", zookeeper, **settings) as cluster:
        cluster.create_topic(TOPIC, (0, 1, 2), min_insync_replicas="2")
        producer = Producer(
            {"bootstrap.servers": cluster.bootstrap, "transactional.id": "payments", "linger.ms": 2, "log_level": 0}
        )
        producer.init_transactions(PATIENCE_S)
        attempts = committed = 0
        while committed < 8:
            attempts += 1
            kills = committed == 3 and cluster.leader(TOPIC) == 0
            if _transaction(producer, cluster, attempts, kills=kills, commits=attempts % 3 != 0):
                committed += 1
        cluster.restart(0)
        cluster.await_isr(TOPIC, (0, 1, 2))
        values = _committed_values(cluster.bootstrap)
        by_attempt: dict[str, int] = {}
        for value in values:
            by_attempt[value.split("/")[0]] = by_attempt.get(value.split("/")[0], 0) + 1
        assert set(by_attempt.values()) == {RECORDS}, "a transaction is seen whole or not at all"
        assert len(by_attempt) == committed
        eventually(lambda: len({_seen_by(cluster, broker) for broker in range(3)}) == 1, PATIENCE_S)


def _transaction(producer: Producer, cluster: OwnCluster, number: int, *, kills: bool, commits: bool) -> bool:
    """Return whether it was committed. A transaction that fails is aborted, and tried as another one."""
    producer.begin_transaction()
    for record in range(RECORDS):
        producer.produce(TOPIC, value=f"{number}/{record}", partition=0)
        if record == RECORDS // 2:
            producer.flush(PATIENCE_S)
            if kills:
                cluster.kill(0)
    try:
        if commits:
            producer.commit_transaction(PATIENCE_S)
            return True
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            raise
    producer.abort_transaction(PATIENCE_S)
    return False


def _committed_values(bootstrap: str) -> list[str]:
    reading = {"group.id": "judge", "isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": bootstrap, **reading})
    found: list[str] = []
    try:
        start, end = consumer.get_watermark_offsets(Position(TOPIC, 0), PATIENCE_S)
        consumer.assign([Position(TOPIC, 0, start)])
        while consumer.position([Position(TOPIC, 0)])[0].offset < end:
            record = consumer.poll(PATIENCE_S)
            assert record is not None
            if record.error() is not None:
                break  # the end: what is left are markers and aborted records
            value = record.value()
            assert isinstance(value, bytes)
            found.append(value.decode())
    finally:
        consumer.close()
    return found


def _seen_by(cluster: OwnCluster, broker: int) -> tuple[object, ...]:
    """High watermark, stable offset and aborted transactions, as a consumer near this replica is answered."""
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        isolation_level=IsolationLevel.READ_COMMITTED,
        topics=[FetchTopic(topic=TOPIC, partitions=[asked])],
    )
    with cluster.client(broker) as client:
        found = client.send(request, FETCH_WITH_NAMES).responses[0].partitions[0]
    aborted = tuple((each.producer_id, each.first_offset) for each in found.aborted_transactions or ())
    return found.error_code, found.high_watermark, found.last_stable_offset, aborted
