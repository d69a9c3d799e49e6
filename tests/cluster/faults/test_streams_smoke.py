"""Kafka Streams' own system tests: the smoke test and the test of exactly-once, by their own verdict.

Their drivers write, their clients process, and their verification says whether every aggregate is right. Streams
processes are killed or stopped as in Kafka's `streams_smoke_test.py` and `streams_eos_test.py`; brokers are killed or
stopped too, one at a time. Among the soaks: minutes each, and the jars come from Maven.
ODRADEK_STREAMS_BROKERS=kafka runs the same on Apache Kafka.
"""

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from apache_kafka import broker_command, jars_of
from chaos.operations import ask_controller
from java_program import java
from obtaining import skipped_if_unobtainable
from odradek.apps.lab.cluster import ChaosCluster
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from waiting import eventually

from .conftest import StartCluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

BROKERS = os.environ.get("ODRADEK_STREAMS_BROKERS", "odradek")
PARTITIONS = 5
REPLICAS = 3
PATIENCE_S = 240
SMOKE_TEST = "org.apache.kafka.streams.tests.StreamsSmokeTest"
EOS_TEST = "org.apache.kafka.streams.tests.StreamsEosTest"
SMOKE_TOPICS = [
    "echo",
    "data",
    "fk",
    "min",
    "min-suppressed",
    "min-raw",
    "max",
    "sum",
    "sws-raw",
    "sws-suppressed",
    "dif",
    "cnt",
    "avg",
    "wcnt",
    "tagg",
]
EOS_TOPICS = ["data", "echo", "min", "sum", "repartition", "max", "cnt"]
SMOKE_SETTINGS = {
    "num.stream.threads": "3",
    "replication.factor": str(REPLICAS),
    "num.standby.replicas": "2",
    "buffered.records.per.partition": "100",
    "commit.interval.ms": "1000",
    "auto.offset.reset": "earliest",
    "acks": "all",
}
SYSTEM_TEST_SETTINGS = {"acceptable.recovery.lag": str((1 << 63) - 1), "session.timeout.ms": "10000"}
"""Settings of Kafka's system tests."""
RUNNING = "REBALANCING -> RUNNING"
PROCESSED = r"processed [0-9]* records from topic"


@pytest.fixture(scope="module")
def jars() -> Path:
    with skipped_if_unobtainable():
        return jars_of("streams_smoke", "ODRADEK_STREAMS_SMOKE_LIB")


@pytest.fixture
def cluster(start_cluster: StartCluster, kafka_lib: Path) -> ChaosCluster:
    launch = dict.fromkeys(range(3), broker_command(kafka_lib)) if BROKERS == "kafka" else {}
    settings = {
        "transaction.state.log.num.partitions": "3",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    }
    return start_cluster(launch=launch, settings=settings)


class Program:
    """One process of the system test after another; the output of each is a file of its own."""

    def __init__(self, name: str, jars: Path, directory: Path, *words: object) -> None:
        self._name, self._jars, self._directory, self._words = name, jars, directory, words
        self._lives: list[ExitStack] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._seen = 0

    @property
    def printed(self) -> Path:
        return self._directory / f"{self._name}-{len(self._lives)}.out"

    def start(self) -> None:
        self._lives.append(ExitStack())
        self._seen = 0
        self._process = self._lives[-1].enter_context(java(f"{self._jars}/*", self.printed, *self._words))

    def end(self, *, clean: bool) -> None:
        """Stop the process, by SIGTERM as an operator does, or by SIGKILL."""
        assert self._process is not None
        if not clean:
            self._process.kill()
        self._lives[-1].close()

    def wait(self) -> str:
        """Return the output of a process that ends by itself."""
        assert self._process is not None
        self._process.wait(2 * PATIENCE_S)
        return self.printed.read_text()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._lives[-1].close()

    def mark(self) -> None:
        """Later waits are for lines that are printed after this."""
        self._seen = self.printed.stat().st_size

    def await_line(self, *patterns: str) -> None:
        for pattern in patterns:
            eventually(lambda pattern=pattern: self._says(pattern), PATIENCE_S)  # type: ignore[misc]

    def _says(self, pattern: str) -> bool:
        with self.printed.open("rb") as file:
            file.seek(self._seen)
            return re.search(pattern, file.read().decode(errors="replace")) is not None


@pytest.fixture
def programs(jars: Path, cluster: ChaosCluster, tmp_path: Path) -> Iterator[Callable[..., Program]]:
    made: list[Program] = []

    def program(name: str, test: str, command: str, settings: Mapping[str, str]) -> Program:
        file = tmp_path / f"{name}.properties"
        state = {"state.dir": str(tmp_path / f"{name}-state"), "bootstrap.servers": cluster.bootstrap}
        lines = {**state, **SYSTEM_TEST_SETTINGS, **settings}
        file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        made.append(Program(name, jars, tmp_path, test, file, command))
        return made[-1]

    yield program
    for each in made:
        each.close()


def create(cluster: ChaosCluster, topics: list[str]) -> None:
    wanted = [CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=REPLICAS) for name in topics]
    ask_controller(cluster, CreateTopicsRequest(topics=wanted, timeout_ms=20_000))
    in_sync(cluster)


def in_sync(cluster: ChaosCluster) -> None:
    """All brokers live, and every partition of every topic is in sync."""

    def is_whole() -> bool:
        answers = [broker.metadata() for broker in cluster.brokers]
        return all(
            metadata is not None
            and len(metadata.brokers) == len(cluster.brokers)
            and all(len(p.isr_nodes) == len(p.replica_nodes) for t in metadata.topics for p in t.partitions)
            for metadata in answers
        )

    eventually(is_whole, PATIENCE_S)


def bounce_leader(cluster: ChaosCluster, topic: str, *, clean: bool) -> None:
    """Kill or stop the leader of a partition, and start it when the others lead."""
    tp = TopicPartition(topic, 0)
    leader = cluster.leader(tp)
    if clean:
        cluster.brokers[leader].stop(patience_seconds=60)
    else:
        cluster.brokers[leader].kill()
    eventually(lambda: cluster.leader(tp) not in (leader, -1), PATIENCE_S)
    cluster.start(leader)
    in_sync(cluster)


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
@pytest.mark.parametrize("clean", [False, True], ids=["hard", "clean"])
def test_smoke(cluster: ChaosCluster, programs: Callable[..., Program], guarantee: str, clean: bool) -> None:
    """Three clients, one after the other; the leader of the input's first partition is bounced under each."""
    create(cluster, SMOKE_TOPICS)
    settings = {**SMOKE_SETTINGS, "processing.guarantee": guarantee}
    driver = programs("driver", SMOKE_TEST, "run", settings)
    clients = [programs(f"client-{number}", SMOKE_TEST, "process", settings) for number in range(3)]
    for number, client in enumerate(clients):
        client.start()
        client.await_line(RUNNING)
        if number == 0:
            driver.start()
        client.await_line("processed")
        bounce_leader(cluster, "data" if number != 1 else "__consumer_offsets", clean=clean)
        if client is not clients[-1]:
            client.end(clean=clean)
    verdict = driver.wait()
    clients[-1].end(clean=True)
    verdicts = {"SUCCESS"} if clean or guarantee == "exactly_once_v2" else {"SUCCESS", "PROCESSED-MORE-THAN-GENERATED"}
    assert verdicts & set(verdict.splitlines()), verdict[-4000:]
    assert "ALL-RECORDS-DELIVERED" in verdict


@pytest.mark.parametrize("complexity", ["", "-complex"], ids=["simple", "complex"])
@pytest.mark.parametrize("clean", [False, True], ids=["hard", "clean"])
def test_exactly_once(cluster: ChaosCluster, programs: Callable[..., Program], clean: bool, complexity: str) -> None:
    """Three clients with standby replicas; one after the other is ended and started again, and so are brokers."""
    create(cluster, EOS_TOPICS)
    settings = {"processing.guarantee": "exactly_once_v2"}
    driver = programs("driver", EOS_TEST, "run", settings)
    clients = [programs(f"client-{number}", EOS_TEST, f"process{complexity}", settings) for number in range(3)]
    driver.start()
    for client in clients:
        client.start()
        client.await_line(RUNNING, PROCESSED)
    bounced = ("data", "__transaction_state", "__consumer_offsets")
    for client, topic in zip(clients, bounced, strict=True):
        others = [each for each in clients if each is not client]
        for each in others:
            each.mark()
        client.end(clean=clean)
        bounce_leader(cluster, topic, clean=clean)
        for each in others:
            each.await_line(PROCESSED)
        client.start()
        client.await_line(RUNNING, PROCESSED)
    for client in clients:
        client.end(clean=True)
    driver.end(clean=True)
    verifier = programs("verifier", EOS_TEST, f"verify{complexity}", settings)
    verifier.start()
    verdict = verifier.wait()
    assert "ALL-RECORDS-DELIVERED" in verdict.splitlines(), verdict[-4000:]
