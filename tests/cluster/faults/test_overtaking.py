"""A batch of librdkafka overtakes the one before it, and meets the new leader first.

When a batch fails, librdkafka first counts it as no longer in flight and puts its records back into their queue later.
If their partition has a new leader by then, the new leader's thread sees that nothing is in flight and sends the next
records. The new leader has never heard of the batch before them: another broker refused it, on another connection. It
must neither take them, for then librdkafka reports the earlier ones as delivered, nor answer with
OUT_OF_ORDER_SEQUENCE_NUMBER, for then librdkafka numbers the records of all its partitions anew, and those whose answer
got lost are stored twice.

Between the two moments the old leader's thread logs a line. Here it logs into a pipe that nobody reads: when the pipe
is full, the thread stops there, and the race is no race any more.
"""

import itertools
import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from chaos.clients import await_condition
from chaos.history import History
from chaos.judge import judge
from chaos.operations import elect_preferred, reassign
from chaos.replica_files import stored_batches
from odradek.apps.lab.cluster import ChaosBroker, ChaosCluster
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import read_header

from .foreign.producers import LibrdkafkaProducer
from .foreign.reader import read_everything

pytestmark = pytest.mark.timeout(200)
PLANTED = Path(__file__).parent / "planted"
SETTINGS = {"min.insync.replicas": "1", "auto.create.topics.enable": "false"}
_numbers = itertools.count(1)
IDLE_S = 2.0
"""librdkafka asks the broker for metadata that was idle for fewer seconds; the one that stalls would not answer."""


class Topics(NamedTuple):
    """Of one test: broker 0 leads the partition and 1 follows; each broker leads a topic besides."""

    tp: TopicPartition
    on_0: str
    on_1: str


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, zookeeper: str) -> Iterator[ChaosCluster]:
    """Two brokers, which the tests share."""
    paths = [str(PLANTED), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        "ODRADEK_PLANTED": "on-demand,no-hints",
        "ODRADEK_PRODUCE_TRACE": "1",
        "PYTHONPATH": os.pathsep.join(paths),
    }
    directory = tmp_path_factory.mktemp("overtaking")
    with ChaosCluster(directory / "cluster", zookeeper, brokers=2, settings=SETTINGS, environment=environment) as made:
        yield made


@pytest.fixture
def topics(cluster: ChaosCluster) -> Topics:
    name = f"orders{next(_numbers)}"
    made = Topics(TopicPartition(name, 0), f"{name}-on-0", f"{name}-on-1")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    homes = {name: [0, 1], made.on_0: [0, 1], made.on_1: [1, 0]}
    wanted = [NewTopic(topic, 1, replica_assignment=[replicas]) for topic, replicas in homes.items()]
    for future in admin.create_topics(wanted).values():
        future.result(30)
    assert await_condition(lambda: cluster.views(made.tp) == {(0, 0, frozenset({0, 1}))}, 30)
    return made


class HeldProducer(LibrdkafkaProducer):
    """Its threads stop at the next line that they log, from `hold` to `let_go`."""

    def __init__(self, directory: Path, bootstrap: str) -> None:
        os.mkfifo(directory / "p.err")
        self._pipe = os.open(directory / "p.err", os.O_RDWR | os.O_NONBLOCK)
        self._turn = threading.Lock()
        self._is_held = False
        self._logged = b""
        self._ended = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        settings = {"debug": "topic", "log_level": 7, "topic.metadata.refresh.interval.ms": -1}
        super().__init__("p", directory, bootstrap, rate=0.0, settings=settings)

    def _read(self) -> None:
        while not self._ended.wait(0.01):
            with self._turn, suppress(BlockingIOError):
                while not self._is_held:
                    self._logged += os.read(self._pipe, 65_536)

    def has_moved(self, tp: TopicPartition, broker: ChaosBroker) -> bool:
        """Return whether the broker's thread has taken over the partition."""
        return f"/{broker.id}: Topic {tp.topic} [{tp.partition}]: joining broker".encode() in self._logged

    def acknowledged(self) -> list[str]:
        return [line for line in self.printed.read_text().splitlines() if line.startswith("A ")]

    def hold(self) -> None:
        with self._turn, suppress(BlockingIOError):
            self._is_held = True
            while True:
                os.write(self._pipe, b"\n" * 4096)

    def let_go(self) -> None:
        with self._turn:
            self._is_held = False

    def close(self) -> None:
        self.let_go()
        self.kill()
        self._ended.set()
        self._reader.join()
        os.close(self._pipe)


@pytest.fixture
def producer(cluster: ChaosCluster, tmp_path: Path) -> Iterator[HeldProducer]:
    made = HeldProducer(tmp_path, cluster.bootstrap)
    yield made
    made.close()


def answers(broker: ChaosBroker, tp: TopicPartition) -> list[str]:
    """To batches of the partition."""
    trace = broker.properties.with_name("produce-trace.log")
    lines = trace.read_text().splitlines() if trace.exists() else []
    return [line for line in lines if f" {tp} " in line and "->" in line]


@pytest.fixture
def old_log(cluster: ChaosCluster, topics: Topics) -> None:
    """Records were deleted, and both brokers have started since: there may have been producers that nobody knows."""
    first = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    first.produce(topics.tp.topic, b"long ago", partition=0)
    assert first.flush(60) == 0
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for future in admin.delete_records([Position(topics.tp.topic, 0, 1)]).values():
        future.result(60)
    for broker in cluster.brokers:
        broker.stop()
        cluster.start(broker.id)
    everybody = frozenset({0, 1})
    assert await_condition(lambda: {isr for _, _, isr in cluster.views(topics.tp)} == {everybody}, 60)
    elect_preferred(cluster)
    assert await_condition(lambda: {leader for leader, _, _ in cluster.views(topics.tp)} == {0}, 60)


@pytest.mark.parametrize("known", [0, 7], ids=["a new producer", "a known producer"])
def test_a_batch_overtakes_another(known: int, cluster: ChaosCluster, topics: Topics, producer: HeldProducer) -> None:
    overtake(known, cluster, topics, producer)


def test_a_batch_of_a_new_producer_overtakes_another_in_an_old_log(
    cluster: ChaosCluster, topics: Topics, old_log: None, producer: HeldProducer
) -> None:
    overtake(0, cluster, topics, producer)


def overtake(known: int, cluster: ChaosCluster, topics: Topics, producer: HeldProducer) -> None:
    (old, new), tp = cluster.brokers, topics.tp
    producer.write_to(topics.on_0, 1, 1)
    producer.write_to(topics.on_1, 1, 1)
    producer.write_to(tp.topic, 1, known)
    assert await_condition(lambda: len(producer.acknowledged()) == known + 2, 60)  # it is connected to both

    stall = old.properties.with_name(f"stall-{tp.topic}")
    stall.touch()
    producer.write_to(tp.topic, 1, 10)
    assert await_condition(lambda: old.properties.with_name(f"stalled-{tp.topic}").exists(), 30)
    producer.write_to(tp.topic, 1, 10)  # in the client's queue: so many in flight are enough
    reassign(cluster, {tp: (1, 0)})
    elect_preferred(cluster)
    assert await_condition(lambda: {leader for leader, _, _ in cluster.views(tp)} == {1}, 60)
    time.sleep(IDLE_S)
    producer.write_to(topics.on_1, 1, 1)
    assert await_condition(lambda: len(producer.acknowledged()) == known + 3, 60)
    producer.learn_leaders(tp.topic)
    assert await_condition(lambda: producer.has_moved(tp, new), 60)

    producer.hold()
    stall.unlink()
    assert await_condition(lambda: bool(answers(new, tp)), 60)
    assert f"sequence={known + 10}-{known + 19}" in answers(new, tp)[0]
    producer.let_go()

    producer.stop()
    history = History()
    producer.tell(history)
    assert len(history.acknowledged) == known + 23
    written = [tp, TopicPartition(topics.on_0, 0), TopicPartition(topics.on_1, 0)]
    assert read_everything(cluster.bootstrap, written, history) == []
    assert judge(history) == []
    headers = [read_header(batch.content) for batch in stored_batches(new.log_dir / str(tp))]
    epochs = {header.producer_epoch for header in headers if header.producer_id >= 0}
    assert epochs == {0}, "its records were numbered anew"
