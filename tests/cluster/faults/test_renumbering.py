"""A broker refuses one batch of a pipeline, since it hasn't heard yet that it leads, and has heard it at the next one.

The producer has five requests in flight, so the next batches are in the broker's socket already when it refuses the
first. Two things must not follow:

- librdkafka takes the acknowledgement of a batch for that of all before it. If the second batch of a producer that the
  log doesn't know is taken, the first is reported as delivered and is nowhere.
- Answered OUT_OF_ORDER_SEQUENCE_NUMBER about the second, librdkafka raises its epoch and numbers the records of *all*
  its partitions anew, those too that are in a log already and whose answer got lost. No broker can know them again, so
  they are stored twice. Kafka's Java producer does so where the first of its batches gets that answer.

Brokers that follow Kafka's rules instead do lose and double records here, and the judge finds it.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from chaos.clients import await_condition
from chaos.history import UNKNOWN_OFFSET, History, Sent
from chaos.judge import Kind, judge
from chaos.replica_files import stored_batches
from odradek.apps.lab.cluster import ChaosBroker, ChaosCluster
from odradek.model.topology import TopicPartition

from .foreign.producers import JavaProducer
from .foreign.reader import read_everything

pytestmark = pytest.mark.timeout(200)
PLANTED = Path(__file__).parent / "planted"
SETTINGS = {"min.insync.replicas": "1", "auto.create.topics.enable": "false"}
FLUSH_S_MAX = 60.0
PARTITIONS = {"a": TopicPartition("a", 0), "b": TopicPartition("b", 0)}


@pytest.fixture
def planted() -> str:
    """Bugs that are planted into the brokers besides moments on demand."""
    return ""


@pytest.fixture
def cluster(planted: str, tmp_path: Path, zookeeper: str) -> Iterator[ChaosCluster]:
    """Two brokers; topic a is on broker 0 alone, b on broker 1."""
    paths = [str(PLANTED), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {"ODRADEK_PLANTED": f"on-demand,{planted}", "PYTHONPATH": os.pathsep.join(paths)}
    with ChaosCluster(tmp_path / "cluster", zookeeper, brokers=2, settings=SETTINGS, environment=environment) as made:
        admin = AdminClient({"bootstrap.servers": made.bootstrap, "log_level": 0})
        topics = [NewTopic("a", 1, replica_assignment=[[0]]), NewTopic("b", 1, replica_assignment=[[1]])]
        for future in admin.create_topics(topics).values():
            future.result(30)
        yield made


class Desk:
    """A producer of whose records each is a batch of its own, so that several are in flight, and its history."""

    def __init__(self, bootstrap: str) -> None:
        self.history = History()
        self._bootstrap = bootstrap
        self._requests: dict[int, int] = {}
        """To each broker, counted every 20 ms."""
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "batch.num.messages": 1,
                "linger.ms": 50,
                "statistics.interval.ms": 20,
                "stats_cb": self._count,
                "log_level": 0,
            }
        )

    def _count(self, statistics: str) -> None:
        brokers = json.loads(statistics)["brokers"].values()
        self._requests = {broker["nodeid"]: broker["req"].get("Produce", 0) for broker in brokers}

    def _await_requests(self, broker: ChaosBroker) -> None:
        """Wait until every record of topic a is in a request to its broker."""
        count = sum(sent.partition == PARTITIONS["a"] for sent in self.history.sent)
        assert await_condition(lambda: self.producer.poll(0) >= 0 and self._requests.get(broker.id, 0) >= count, 30)

    def send(self, topic: str, count: int) -> None:
        for _ in range(count):
            sent = Sent("p", len(self.history.sent), PARTITIONS[topic])
            self.history.record_sent(sent)
            self.producer.produce(topic, sent.value, partition=0, on_delivery=self._noting(sent))

    def send_before(self, refusing: ChaosBroker, count: int) -> None:
        """To topic a of a broker that refuses the first batch, when it has all of them."""
        hold = wish(refusing, "hold")
        hold.touch()
        wish(refusing, "refuse-a").touch()
        self.send("a", count)
        self._await_requests(refusing)
        hold.unlink()

    def _noting(self, sent: Sent) -> Callable[[KafkaError | None, Message], None]:
        def delivered(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            if error is None:
                self.history.record_acknowledged(sent, UNKNOWN_OFFSET if offset is None else offset)
            else:
                self.history.record_failed(sent, str(error), definite=False)

        return delivered

    def flush(self) -> None:
        assert self.producer.flush(FLUSH_S_MAX) == 0

    def read(self) -> History:
        """Everything that is in both topics, beside what was acknowledged."""
        assert read_everything(self._bootstrap, list(PARTITIONS.values()), self.history) == []
        return self.history


@pytest.fixture
def desk(cluster: ChaosCluster) -> Desk:
    return Desk(cluster.bootstrap)


def wish(broker: ChaosBroker, name: str) -> Path:
    """A file by which a test asks for a moment, see planted/sitecustomize.py."""
    return broker.properties.with_name(name)


def segment(broker: ChaosBroker, topic: str) -> Path:
    return broker.log_dir / f"{topic}-0" / f"{0:020}.log"


def kinds(history: History) -> set[Kind]:
    return {anomaly.kind for anomaly in judge(history)}


def refuse_the_first_batch(cluster: ChaosCluster, desk: Desk) -> History:
    desk.send_before(cluster.brokers[0], 3)
    desk.flush()
    return desk.read()


def test_the_first_batches_of_a_producer(cluster: ChaosCluster, desk: Desk) -> None:
    history = refuse_the_first_batch(cluster, desk)
    assert judge(history) == []
    assert len(history.acknowledged) == 3


@pytest.mark.parametrize("planted", ["kafkas-sequences"])
def test_a_lost_first_batch_is_found(cluster: ChaosCluster, desk: Desk) -> None:
    assert kinds(refuse_the_first_batch(cluster, desk)) == {Kind.LOST}


def refuse_a_batch_while_another_waits(cluster: ChaosCluster, desk: Desk) -> History:
    """Broker 1 dies when it has written a batch and not answered; meanwhile broker 0 refuses a batch once."""
    desk.send("a", 1)
    desk.send("b", 1)
    desk.flush()
    size = segment(cluster.brokers[1], "b").stat().st_size

    wish(cluster.brokers[1], "mute").touch()
    desk.send("b", 1)
    assert await_condition(lambda: segment(cluster.brokers[1], "b").stat().st_size > size, 30)
    cluster.brokers[1].kill()
    wish(cluster.brokers[1], "mute").unlink()

    desk.send_before(cluster.brokers[0], 3)
    assert await_condition(lambda: desk.producer.poll(0.0) >= 0 and len(desk.producer) == 1, FLUSH_S_MAX)

    cluster.start(1)
    desk.flush()
    return desk.read()


def test_nothing_of_another_partition_is_stored_twice(cluster: ChaosCluster, desk: Desk) -> None:
    history = refuse_a_batch_while_another_waits(cluster, desk)
    assert judge(history) == []
    assert len(history.acknowledged) == 6


@pytest.mark.soak
@pytest.mark.parametrize("planted", ["kafkas-sequences"])
def test_a_record_stored_twice_is_found(cluster: ChaosCluster, desk: Desk) -> None:
    assert Kind.DUPLICATE in kinds(refuse_a_batch_while_another_waits(cluster, desk))


def stop_before_answering(cluster: ChaosCluster, desk: Desk) -> History:
    """Broker 0 stops cleanly when it has written three batches and answered none."""
    desk.send("a", 1)
    desk.flush()
    size = segment(cluster.brokers[0], "a").stat().st_size

    wish(cluster.brokers[0], "mute").touch()
    desk.send("a", 3)
    assert await_condition(lambda: segment(cluster.brokers[0], "a").stat().st_size == 4 * size, 30)
    cluster.brokers[0].stop()
    wish(cluster.brokers[0], "mute").unlink()

    cluster.start(0)
    desk.flush()
    return desk.read()


def test_batches_of_before_a_clean_stop(cluster: ChaosCluster, desk: Desk) -> None:
    history = stop_before_answering(cluster, desk)
    assert judge(history) == []
    assert len(history.acknowledged) == 4


@pytest.mark.soak
@pytest.mark.parametrize("planted", ["kafkas-snapshots"])
def test_a_clean_stop_ends_a_producer(cluster: ChaosCluster, desk: Desk) -> None:
    """Kafka's snapshots hold the last batch of each producer: librdkafka gives up, in one of several shapes."""
    with pytest.raises((KafkaException, SystemError)):
        stop_before_answering(cluster, desk)


def stop_before_answering_java(cluster: ChaosCluster, java: JavaProducer) -> History:
    directory = segment(cluster.brokers[0], "a").parent

    def await_batches(more: int) -> None:
        goal = len(list(stored_batches(directory))) + more
        assert await_condition(lambda: len(list(stored_batches(directory))) >= goal, 60)

    await_batches(10)
    wish(cluster.brokers[0], "mute").touch()
    await_batches(3)
    cluster.brokers[0].stop()
    wish(cluster.brokers[0], "mute").unlink()
    cluster.start(0)
    await_batches(10)
    java.stop()
    history = History()
    java.tell(history)
    assert read_everything(cluster.bootstrap, [PARTITIONS["a"]], history) == []
    return history


@pytest.fixture
def java(cluster: ChaosCluster, tmp_path: Path, kafka_lib: Path) -> Iterator[JavaProducer]:
    producer = JavaProducer("7", tmp_path, cluster.bootstrap, kafka_lib, topic="a", rate=100)
    yield producer
    producer.kill()


@pytest.mark.soak
def test_batches_of_java_before_a_clean_stop(cluster: ChaosCluster, java: JavaProducer) -> None:
    assert judge(stop_before_answering_java(cluster, java)) == []


@pytest.mark.soak
@pytest.mark.parametrize("planted", ["kafkas-snapshots"])
def test_records_of_java_stored_twice_are_found(cluster: ChaosCluster, java: JavaProducer) -> None:
    assert Kind.DUPLICATE in kinds(stop_before_answering_java(cluster, java))
