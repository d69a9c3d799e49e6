"""A broker refuses one batch of a pipeline, since it hasn't heard yet that it leads, and has heard it at the next one.

The producer has five requests in flight, so the next batches are in the broker's socket already when it refuses the
first. Two things must not follow:

- librdkafka takes the acknowledgement of a batch for that of all before it. If the second batch of a producer that the
  log doesn't know is taken, the first is reported as delivered and is nowhere.
- Answered OUT_OF_ORDER_SEQUENCE_NUMBER about the second, librdkafka raises its epoch and numbers the records of *all*
  its partitions anew, those too that are in a log already and whose answer got lost. No broker can know them again, so
  they are stored twice.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from odradek.lab.chaos.clients import await_condition
from odradek.lab.chaos.cluster import ChaosBroker, ChaosCluster
from odradek.lab.chaos.history import History
from odradek.lab.chaos.judge import judge
from odradek.model.topology import TopicPartition

from .foreign.producers import JavaProducer
from .foreign.reader import read_everything

pytestmark = pytest.mark.timeout(200)
PLANTED = Path(__file__).parent / "planted"
SETTINGS = {"min.insync.replicas": "1", "auto.create.topics.enable": "false"}
FLUSH_S_MAX = 60.0


@pytest.fixture
def cluster(tmp_path: Path, zookeeper: str) -> Iterator[ChaosCluster]:
    """Two brokers; topic a is on broker 0 alone, b on broker 1."""
    paths = [str(PLANTED), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {"ODRADEK_PLANTED": "on-demand", "PYTHONPATH": os.pathsep.join(paths)}
    with ChaosCluster(tmp_path / "cluster", zookeeper, brokers=2, settings=SETTINGS, environment=environment) as made:
        admin = AdminClient({"bootstrap.servers": made.bootstrap, "log_level": 0})
        topics = [NewTopic("a", 1, replica_assignment=[[0]]), NewTopic("b", 1, replica_assignment=[[1]])]
        for future in admin.create_topics(topics).values():
            future.result(30)
        yield made


@pytest.fixture
def producer(cluster: ChaosCluster) -> Producer:
    """Each record is a batch of its own, so that several are in flight."""
    return Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "enable.idempotence": True,
            "acks": "all",
            "batch.num.messages": 1,
            "linger.ms": 50,
            "log_level": 0,
        }
    )


def send(producer: Producer, *values: str) -> None:
    """To the topic that their first letter names."""
    for value in values:
        producer.produce(value[0], value, partition=0)


def wish(broker: ChaosBroker, name: str) -> Path:
    """A file by which a test asks for a moment, see planted/sitecustomize.py."""
    return broker.properties.with_name(name)


def read(cluster: ChaosCluster) -> list[str]:
    history = History()
    assert read_everything(cluster.bootstrap, [TopicPartition("a", 0), TopicPartition("b", 0)], history) == []
    return sorted(polled.value for polled in history.polled)


def test_the_first_batches_of_a_producer(cluster: ChaosCluster, producer: Producer) -> None:
    wish(cluster.brokers[0], "refuse-a").touch()
    send(producer, "a0", "a1", "a2")
    assert producer.flush(FLUSH_S_MAX) == 0
    assert read(cluster) == ["a0", "a1", "a2"]


def test_nothing_of_another_partition_is_stored_twice(cluster: ChaosCluster, producer: Producer) -> None:
    """Broker 1 dies when it has written b1 and not answered; meanwhile broker 0 refuses a1 once."""
    send(producer, "a0", "b0")
    assert producer.flush(FLUSH_S_MAX) == 0
    segment = cluster.brokers[1].log_dir / "b-0" / f"{0:020}.log"
    size = segment.stat().st_size

    wish(cluster.brokers[1], "mute").touch()
    send(producer, "b1")
    assert await_condition(lambda: segment.stat().st_size > size, 30)
    cluster.brokers[1].kill()
    wish(cluster.brokers[1], "mute").unlink()

    wish(cluster.brokers[0], "refuse-a").touch()
    send(producer, "a1", "a2", "a3")
    assert await_condition(lambda: producer.poll(0.0) >= 0 and len(producer) == 1, FLUSH_S_MAX)  # but for b1

    cluster.start(1)
    assert producer.flush(FLUSH_S_MAX) == 0
    assert read(cluster) == ["a0", "a1", "a2", "a3", "b0", "b1"]


def test_batches_of_before_a_clean_stop(cluster: ChaosCluster, producer: Producer) -> None:
    """Broker 0 stops when it has written three batches and answered none. Its snapshot holds the last one alone."""
    send(producer, "a0")
    assert producer.flush(FLUSH_S_MAX) == 0
    segment = cluster.brokers[0].log_dir / "a-0" / f"{0:020}.log"
    size = segment.stat().st_size

    wish(cluster.brokers[0], "mute").touch()
    send(producer, "a1", "a2", "a3")
    assert await_condition(lambda: segment.stat().st_size == 4 * size, 30)
    cluster.brokers[0].stop()
    wish(cluster.brokers[0], "mute").unlink()

    cluster.start(0)
    assert producer.flush(FLUSH_S_MAX) == 0
    assert read(cluster) == ["a0", "a1", "a2", "a3"]


def test_batches_of_java_before_a_clean_stop(cluster: ChaosCluster, tmp_path: Path, kafka_lib: Path) -> None:
    java = JavaProducer("7", tmp_path, cluster.bootstrap, kafka_lib, topic="a", rate=100)
    try:
        segment = cluster.brokers[0].log_dir / "a-0" / f"{0:020}.log"
        assert await_condition(lambda: segment.stat().st_size > 1000, 60)
        wish(cluster.brokers[0], "mute").touch()
        size = segment.stat().st_size
        assert await_condition(lambda: segment.stat().st_size > size + 300, 30)  # several batches are in flight
        cluster.brokers[0].stop()
        wish(cluster.brokers[0], "mute").unlink()
        size = segment.stat().st_size
        cluster.start(0)
        assert await_condition(lambda: segment.stat().st_size > size + 1000, 60)
    finally:
        java.stop()
    history = History()
    java.tell(history)
    assert read_everything(cluster.bootstrap, [TopicPartition("a", 0)], history) == []
    assert judge(history) == []
