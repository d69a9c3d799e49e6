"""Groups of clients in five languages' libraries in one cluster, under load, with members that come, go and die.

Eager, cooperative and static. Each reader is a process of its own and tells what it read and what it has committed.
Every record is read; none is read again once a position after it was acknowledged to somebody, whoever owns it then.
"""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from class_archive import class_path
from java_program import SHORT_LIVED, compiled

from .own_cluster import OwnCluster, running_cluster

pytestmark = pytest.mark.timeout(400)

READERS = Path(__file__).parent / "group_readers"
PARTITIONS = 6
TOPIC = "read-by-all"
PATIENCE_S = 120.0
PAUSE_S = 0.005
STAMPS_MS = 5
"""Stamps are whole milliseconds of several clocks' readings of the same time."""


class Line(NamedTuple):
    what: str
    partition: int
    offset: int
    at_ms: int


class Reader:
    """A process in a group, and what it has told so far."""

    def __init__(self, command: list[str], log: Path, environment: dict[str, str] | None = None) -> None:
        self._log = log
        with log.open("wb") as out, log.with_suffix(".err").open("wb") as err:
            env = os.environ | (environment or {})
            self.process = subprocess.Popen(command, stdout=out, stderr=err, env=env)

    def lines(self) -> list[Line]:
        whole, _, _ = self._log.read_text().rpartition("\n")
        told = [line.split() for line in whole.splitlines()]
        return [Line(what, int(partition), int(offset), int(at_ms)) for what, partition, offset, at_ms in told]

    def errors(self) -> str:
        return self._log.with_suffix(".err").read_text()[-500:]

    @property
    def has_committed(self) -> bool:
        return any(line.what == "C" for line in self.lines())

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Readers:
    """Starts them, by name of their client, and remembers them by group."""

    def __init__(self, bootstrap: str, directory: Path, kafka_lib: Path) -> None:
        self._bootstrap = bootstrap
        self._directory = directory
        self._kafka_lib = kafka_lib
        self.by_group: dict[str, list[Reader]] = defaultdict(list)
        (directory / "log4j.properties").write_text("log4j.rootLogger=OFF\n")

    def start(self, client: str, group: str, assignor: str = "range", instance: str = "-") -> Reader:
        where = [self._bootstrap, TOPIC, group]
        log = self._directory / f"{group}-{len(self.by_group[group])}-{client}"
        if client == "java":
            log4j = f"-Dlog4j.configuration=file:{self._directory}/log4j.properties"
            classes = class_path(self._kafka_lib, compiled(READERS / "Reader.java", self._kafka_lib))
            java = ["java", "-Xmx128m", *SHORT_LIVED, log4j, *classes, "Reader"]
            reader = Reader([*java, *where, assignor, instance], log)
        elif client == "kafkajs":
            reader = Reader(["node", str(READERS / "reader.js"), *where], log, {"NODE_PATH": str(kafkajs())})
        else:
            command = [sys.executable, str(READERS / "reader.py"), client, *where, assignor, instance]
            reader = Reader(command, log)
        self.by_group[group].append(reader)
        return reader

    def await_all_have_committed(self) -> None:
        for group, readers in self.by_group.items():
            for reader in readers:
                running = reader.process.poll() is None
                assert not running or await_true(lambda reader=reader: reader.has_committed), (
                    group,
                    reader.process.args,
                    reader.errors(),
                )

    def lines(self, group: str) -> list[Line]:
        return [line for reader in self.by_group[group] for line in reader.lines()]

    def end(self) -> None:
        for readers in self.by_group.values():
            for reader in readers:
                reader.kill()


def await_true(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def kafkajs() -> Path:
    return Path(os.environ.get("ODRADEK_KAFKAJS", Path(__file__).parents[2] / ".tools" / "kafkajs")) / "node_modules"


class Load:
    """One record after the other, until it is told to stop."""

    def __init__(self, bootstrap: str) -> None:
        self.ends = dict.fromkeys(range(PARTITIONS), 0)
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            partition = number % PARTITIONS
            self._producer.produce(TOPIC, str(number), partition=partition)
            self.ends[partition] += 1
            number += 1
            self._producer.poll(0)
            time.sleep(PAUSE_S)
        assert self._producer.flush(PATIENCE_S) == 0


@pytest.fixture
def cluster(tmp_path: Path, zookeeper: str) -> Iterator[OwnCluster]:
    with running_cluster(tmp_path, zookeeper, group_initial_rebalance_delay_ms="0") as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(60)
        yield cluster


@pytest.fixture
def readers(cluster: OwnCluster, tmp_path: Path, kafka_lib: Path) -> Iterator[Readers]:
    readers = Readers(cluster.bootstrap, tmp_path, kafka_lib)
    yield readers
    readers.end()


def judge(lines: list[Line], ends: dict[int, int]) -> list[str]:
    """Return the records never read, and those read again although a position after them had been acknowledged."""
    read = defaultdict(set)
    for line in lines:
        if line.what == "R":
            read[line.partition].add(line.offset)
    faults = [f"partition {p}: {end - len(read[p])} records unread" for p, end in ends.items() if len(read[p]) < end]
    seen: set[tuple[int, int]] = set()
    committed: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for line in lines:
        if line.what == "C":
            committed[line.partition].append((line.at_ms, line.offset))
    for line in sorted(lines, key=lambda each: each.at_ms):
        if line.what != "R":
            continue
        if (line.partition, line.offset) in seen:
            earlier = [at for at, position in committed[line.partition] if position > line.offset]
            if earlier and min(earlier) + STAMPS_MS < line.at_ms:
                faults.append(f"partition {line.partition}, offset {line.offset}: read again after it was committed")
        seen.add((line.partition, line.offset))
    return faults


def is_all_read(lines: list[Line], ends: dict[int, int]) -> bool:
    read = {(line.partition, line.offset) for line in lines if line.what == "R"}
    return len(read) >= sum(ends.values())


def test_everything_is_read_and_nothing_after_it_was_committed(cluster: OwnCluster, readers: Readers) -> None:
    load = Load(cluster.bootstrap)
    try:
        leaving = readers.start("confluent", "eager")
        dying = readers.start("aiokafka", "eager")
        readers.start("kafka-python", "eager")
        readers.start("java", "eager")
        moving = readers.start("java", "cooperative", "cooperative-sticky")
        readers.start("confluent", "cooperative", "cooperative-sticky")
        returning = readers.start("confluent", "static", instance="one")
        readers.start("java", "static", instance="two")
        if shutil.which("node") and kafkajs().exists():
            parting = readers.start("kafkajs", "js")
            readers.start("kafkajs", "js")
        readers.await_all_have_committed()
        leaving.stop()
        dying.kill()
        moving.kill()
        returning.stop()
        readers.start("confluent", "static", instance="one")
        readers.start("java", "cooperative", "cooperative-sticky")
        readers.start("kafka-python", "eager")
        if "js" in readers.by_group:
            parting.stop()
        readers.await_all_have_committed()
        coordinators = cluster.leader("__consumer_offsets", 0)
        cluster.kill(coordinators)
        time.sleep(1)
        cluster.restart(coordinators)
    finally:
        load.stop()
    for group in readers.by_group:
        assert await_true(lambda group=group: is_all_read(readers.lines(group), load.ends)), (  # type: ignore[misc]
            group,
            judge(readers.lines(group), load.ends),
            [reader.errors() for reader in readers.by_group[group]],
        )
    faults = {group: judge(readers.lines(group), load.ends)[:5] for group in readers.by_group}
    assert not any(faults.values()), faults
    if "js" not in readers.by_group:
        pytest.skip("all but kafkajs were there (npm install --prefix .tools/kafkajs kafkajs)")


def test_the_judge_finds_what_is_lost_and_what_is_read_again() -> None:
    honest = [Line("R", 0, 0, 10), Line("R", 0, 1, 11), Line("R", 0, 1, 50), Line("C", 0, 2, 60)]
    assert judge(honest, {0: 2}) == [], "read again, but never committed before"
    assert judge(honest[:1], {0: 2}) == ["partition 0: 1 records unread"]
    again = [*honest, Line("R", 0, 1, 100)]
    assert judge(again, {0: 2}) == ["partition 0, offset 1: read again after it was committed"]
