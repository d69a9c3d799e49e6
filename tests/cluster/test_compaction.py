"""Compacted topics on a real broker: what clients read in the end stays the same, through crashes too."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from odradek.broker.log.files.checkpoint import read_offsets
from odradek.format.checkpoints import CLEANER_FILE
from odradek.model import topology
from waiting import eventually

from .own_broker import OwnBroker, running
from .own_cluster import running_cluster

PATIENCE_S = 60
TOPIC = "latest"
TP = topology.TopicPartition(TOPIC, 0)
SETTINGS = {"cleanup.policy": "compact", "segment.bytes": "4000", "min.cleanable.dirty.ratio": "0.01"}


@pytest.fixture
def broker(tmp_path: Path, zookeeper: str) -> Iterator[OwnBroker]:
    settings = {
        "log_cleaner_backoff_ms": "50",
        "offsets_topic_num_partitions": "1",
        "offsets_topic_segment_bytes": "4000",
        "log_cleaner_min_cleanable_ratio": "0.01",
    }
    with running(OwnBroker(tmp_path, zookeeper, **settings)) as started:
        yield started


@pytest.mark.timeout(300)
def test_the_last_value_of_each_key_survives_compaction_and_crashes(broker: OwnBroker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.create_topics([NewTopic(TOPIC, 1, 1, config=SETTINGS)]).values():
        future.result(PATIENCE_S)
    expected: dict[bytes, bytes] = {}
    written = 0
    for end in (broker.kill, broker.stop):
        written += _write(broker, expected, generation=end.__name__.encode())
        _await_compaction(broker, TP, written - 100)
        assert _read(broker, written) == expected
        end()
        broker.start()
        assert _read(broker, written) == expected
    assert "can't be compacted" not in broker.log


@pytest.mark.timeout(300)
def test_committed_offsets_are_compacted_and_come_back_after_a_crash(broker: OwnBroker) -> None:
    offsets_tp = topology.TopicPartition("__consumer_offsets", 0)
    broker.create_topic(TOPIC)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "enable.auto.commit": False})
    for offset in range(1, 401):
        eventually(lambda position=offset: _commits(consumer, position), PATIENCE_S)  # type: ignore[misc]
    consumer.close()
    _await_compaction(broker, offsets_tp, 300)
    broker.kill()
    broker.start()
    again = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"})
    found: list[int] = []

    def is_told() -> bool:
        try:
            found.extend(position.offset for position in again.committed([TopicPartition(TOPIC, 0)], timeout=10))
        except KafkaException:  # the coordinator isn't elected yet
            return False
        return True

    eventually(is_told, PATIENCE_S)
    again.close()
    assert found == [400]


@pytest.mark.timeout(400)
def test_a_follower_copies_what_compaction_left(tmp_path: Path, zookeeper: str) -> None:
    """It was away while the leader compacted: the gaps reach over where it stopped."""
    with running_cluster(tmp_path, zookeeper, brokers=2, log_cleaner_backoff_ms="50") as cluster:
        leader, follower = cluster.brokers
        cluster.create_topic(TOPIC, (0, 1), **SETTINGS, min_insync_replicas="1")
        expected: dict[bytes, bytes] = {}
        written = _write(leader, expected, b"both")
        cluster.await_isr(TOPIC, {0, 1})
        cluster.kill(1)
        written += _write(leader, expected, b"alone")
        _await_compaction(leader, TP, written - 100)
        cluster.restart(1)
        cluster.await_isr(TOPIC, {0, 1})
        _await_compaction(follower, TP, written - 100)
        cluster.kill(0)
        cluster.await_leader_other_than(0, TOPIC)
        assert _read(follower, written) == expected


def _commits(consumer: Consumer, offset: int) -> bool:
    try:
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
    except KafkaException:  # there is no coordinator yet
        return False
    return True


def _write(broker: OwnBroker, expected: dict[bytes, bytes], generation: bytes) -> int:
    """1,000 records of 20 keys, one a batch so that segments roll; how many."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.num.messages": 1, "enable.idempotence": True})
    for number in range(1000):
        key, value = b"key %d" % (number % 20), b"%s %d" % (generation, number)
        producer.produce(TOPIC, key=key, value=value)
        expected[key] = value
    assert producer.flush(PATIENCE_S) == 0
    return 1000


def _read(broker: OwnBroker, end: int) -> dict[bytes, bytes]:
    """Return the last value of each key, for a reader of the whole topic."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: dict[bytes, bytes] = {}
    next_offset = 0

    def more() -> bool:
        nonlocal next_offset
        for message in consumer.consume(500, timeout=1):
            assert message.error() is None, message.error()
            key, value, offset = message.key(), message.value(), message.offset()
            assert isinstance(key, bytes)
            assert isinstance(value, bytes)
            assert offset is not None
            assert offset >= next_offset
            found[key] = value
            next_offset = offset + 1
        return next_offset >= end

    eventually(more, PATIENCE_S)
    consumer.close()
    return found


def _await_compaction(broker: OwnBroker, tp: topology.TopicPartition, offset: int) -> None:
    """Until the log is clean up to the offset, and has the size of one that is."""

    def is_small() -> bool:
        try:
            size = sum(path.stat().st_size for path in broker.partition_dir(tp.topic).glob("*.log"))
        except FileNotFoundError:  # swapped just now
            return False
        return size < 20_000

    eventually(lambda: read_offsets(broker.log_dirs[0] / CLEANER_FILE).get(tp, 0) > offset, PATIENCE_S)
    eventually(is_small, PATIENCE_S)
