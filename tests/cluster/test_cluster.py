"""Three brokers, real ZooKeeper: what is acknowledged survives whoever dies, and the cluster goes on without a hand."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from waiting import eventually

from .own_cluster import PATIENCE_S, OwnCluster, running_cluster

ALL = (0, 1, 2)


@pytest.fixture
def cluster(tmp_path: Path, zookeeper: str) -> Iterator[OwnCluster]:
    with running_cluster(tmp_path, zookeeper) as cluster:
        yield cluster


class Writer:
    """Writes numbers, each acknowledged by the whole ISR, and remembers what became of them."""

    def __init__(self, cluster: OwnCluster, topic: str) -> None:
        self.acknowledged: list[int] = []
        self.refused: list[KafkaError] = []
        self._topic = topic
        self._next = 0
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "enable.idempotence": True,
                "delivery.timeout.ms": 120_000,
                "log_level": 0,
            }
        )

    def write(self, count: int, partition: int = 0) -> None:
        """Returns when all of them have been acknowledged."""
        for _ in range(count):
            self.write_one(partition)
        assert self._producer.flush(2 * PATIENCE_S) == 0, "not everything was answered"
        assert self.refused == []

    def write_one(self, partition: int = 0) -> None:
        number, self._next = self._next, self._next + 1

        def told(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self.acknowledged.append(number)
            else:
                self.refused.append(error)

        self._producer.produce(self._topic, str(number), partition=partition, on_delivery=told)
        self._producer.poll(0)

    def write_slowly_until(self, enough: threading.Event) -> None:
        """A few at a time, each few acknowledged before the next."""
        while not enough.is_set():
            self.write(5)
            enough.wait(0.02)


def read_all(cluster: OwnCluster, topic: str, partition: int = 0) -> list[int]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader", "enable.auto.commit": False})
    try:
        tp = TopicPartition(topic, partition, 0)
        _, end = consumer.get_watermark_offsets(tp, timeout=PATIENCE_S)
        consumer.assign([tp])
        found: list[int] = []

        def read() -> bool:
            for message in consumer.consume(1000, timeout=1):
                assert message.error() is None, message.error()
                found.append(int(message.value() or b""))
            return len(found) >= end

        eventually(read, PATIENCE_S)
        return found
    finally:
        consumer.close()


def sessions_of(cluster: OwnCluster, brokers: tuple[int, ...]) -> list[int | None]:
    """The epoch of each broker's registration: it changes with the session."""
    registered = cluster.store.brokers.load_brokers()
    return [registered[number].epoch if number in registered else None for number in brokers]


def test_leader_and_controller_die_together_and_nothing_acknowledged_is_lost(cluster: OwnCluster) -> None:
    dead = cluster.controller()
    others = tuple(number for number in ALL if number != dead)
    cluster.create_topic("orders", (dead, *others), min_insync_replicas="2")
    writer = Writer(cluster, "orders")
    writer.write(100)

    cluster.kill(dead)
    writer.write(100)
    # where the machine stalled, another one may lead already, and the end of the dead one's session is yet to come
    eventually(lambda: cluster.controller() in others, PATIENCE_S)
    eventually(lambda: cluster.leader("orders") in others, PATIENCE_S)
    cluster.await_isr("orders", others)

    sessions = sessions_of(cluster, others)
    cluster.restart(dead)
    cluster.await_isr("orders", ALL)
    leader = cluster.leader("orders")
    # a machine that stalls for seconds may cost the leader its session, and then another one is elected
    assert leader in others or sessions_of(cluster, others) != sessions, "the broker that comes back follows"
    writer.write(100)
    assert writer.acknowledged == list(range(300))
    assert read_all(cluster, "orders") == list(range(300))


def test_a_rolling_restart_is_not_noticed_by_a_running_producer(cluster: OwnCluster) -> None:
    cluster.create_topic("orders", ALL, min_insync_replicas="2")
    writer = Writer(cluster, "orders")
    writer.write(10)
    enough = threading.Event()
    writing = threading.Thread(target=writer.write_slowly_until, args=(enough,))
    writing.start()
    try:
        for number in ALL:
            assert cluster.brokers[number].stop() == 0
            assert cluster.leader("orders") != number, "it hands over before it goes"
            cluster.restart(number)
            cluster.await_isr("orders", ALL)
    finally:
        enough.set()
        writing.join(2 * PATIENCE_S)
    assert not writing.is_alive()
    assert writer.refused == []
    assert read_all(cluster, "orders") == sorted(writer.acknowledged)


def test_without_enough_in_sync_replicas_writes_are_refused_until_one_returns(cluster: OwnCluster) -> None:
    cluster.create_topic("orders", ALL, min_insync_replicas="2")
    writer = Writer(cluster, "orders")
    writer.write(10)
    cluster.kill(1)
    cluster.kill(2)
    cluster.await_isr("orders", [0])
    admin = AdminClient({"bootstrap.servers": cluster.brokers[0].bootstrap, "log_level": 0})

    def told() -> list[int]:
        return list(admin.list_topics("orders", timeout=PATIENCE_S).topics["orders"].partitions[0].isrs)

    eventually(lambda: told() == [0], PATIENCE_S)  # it tells its clients after it has taken the news itself

    impatient = Producer({"bootstrap.servers": cluster.brokers[0].bootstrap, "acks": "all", "retries": 0})
    refusals: list[KafkaError | None] = []
    impatient.produce("orders", "never", partition=0, on_delivery=lambda error, message: refusals.append(error))
    assert impatient.flush(PATIENCE_S) == 0
    assert [error.name() for error in refusals if error] == ["NOT_ENOUGH_REPLICAS"]

    cluster.restart(1)
    cluster.await_isr("orders", [0, 1])
    writer.write(10)
    assert read_all(cluster, "orders") == list(range(20))
