"""Fixtures of several kinds of test: real ZooKeeper, and real Apache Kafka where it can be had."""

import gc
import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from confluent_kafka import Producer
from hypothesis import HealthCheck, settings
from xdist.remote import Producer as LogProducer
from xdist.scheduler import LoadFileScheduling

from apache_kafka import KafkaPeer, kafka4_jars, kafka_jars
from class_archive import share_zookeeper_classes
from coordination_server import coordination_server
from forked_brokers import fork_brokers
from kafka_tools import KafkaTools
from obtaining import skipped_if_unobtainable
from odradek.apps.pipeline.spark_home import SWITCH as ARCHIVE_OF_SPARK_CLASSES
from odradek.base import logs
from odradek.local import zookeeper_server as server

# also when the package is not installed, and its entry point unknown
pytest_plugins = ["odradek.testing"]

# A run that was started in the background ignores Ctrl-C, and so would every process that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Every process of tests on this machine, workers of other runs too, chooses the ports of its servers from a range of
# its own, below that of the processes it starts: a port is chosen some time before somebody listens on it, and nobody
# else must choose it meanwhile. Of sixteen ports one is chosen: the brokers of a cluster listen side by side, their
# metrics a hundred above (4 modulo 16), their internal listeners two hundred above (8). So none of these is chosen for
# another server, as it is where 200 is a multiple of the step.
_RANGES, _RANGE_PORTS, _STEP = 8, 1_872, 16
_range_name = socket.socket(socket.AF_UNIX)
"""Holds the range, by a name in the kernel, until this process ends."""


def _own_range() -> range:
    """The first range that no other process holds."""
    for first in range(5_000, 5_000 + _RANGES * _RANGE_PORTS, _RANGE_PORTS):
        with suppress(OSError):
            _range_name.bind(f"\0odradek-test-ports-{first}")
            return range(first, first + _RANGE_PORTS, _STEP)
    return range(5_000, 5_000 + _RANGES * _RANGE_PORTS, _STEP)


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault(ARCHIVE_OF_SPARK_CLASSES, "off")  # a pipeline would make one at the end of its run
    hands_out = config.getoption("numprocesses", None) and not hasattr(config, "workerinput")
    if not hands_out:  # else it starts no server itself
        server._SERVER_PORTS = _own_range()
        fork_brokers()
        share_zookeeper_classes()


# On a loaded machine an example takes as long as it takes.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

_ROOT = Path(__file__).parent.parent
_SHARED = ("Spark", "console", "Apache Kafka")
_LONGEST_FIRST = ("tests/cluster/", "tests/wire/", "tests/")
_OF_KAFKA = re.compile(r"\b(kafka_peer|KafkaPair|kafka_tools|java_tool)\b")


@cache
def _shared(file: str) -> str | None:
    """What all tests of this file share with those of others, and costs so much that one worker has it."""
    if file.startswith("tests/pipeline/"):
        return "Spark"
    if file.startswith("tests/console/"):
        return "console"
    is_of_kafka = file.startswith("tests/cluster/") and _OF_KAFKA.search((_ROOT / file).read_text())
    return "Apache Kafka" if is_of_kafka else None


class SharedScheduling(LoadFileScheduling):
    """A file stays with one worker, whose brokers it shares; all that needs Spark stays with one, and its session; all
    that needs the console with one, and its cluster and browser; all that needs Apache Kafka's broker or tools with
    one."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return _shared(file) or file


def _turn(item: pytest.Item) -> int:
    file = item.nodeid.partition("::")[0]
    if shared := _shared(file):
        return _SHARED.index(shared) - len(_SHARED)
    return next((turn for turn, kind in enumerate(_LONGEST_FIRST) if file.startswith(kind)), len(_LONGEST_FIRST))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What can't be divided begins first, and what is short fills the gaps at the end."""
    items.sort(key=_turn)


def pytest_collection_finish() -> None:
    gc.freeze()  # all that was imported stays, and need not be looked through at every collection of garbage


@pytest.fixture(autouse=True)
def _logs_as_they_were() -> Iterator[None]:
    """A test may run a command that decides where this process logs, or change a level: not for the tests after it."""
    output, levels = dict(vars(logs._output)), {part: logger.threshold for part, logger in logs._loggers.items()}
    yield
    vars(logs._output).update(output)
    for part, logger in logs._loggers.items():
        logger.threshold = levels.get(part)


@pytest.fixture(autouse=True)
def _no_clients_are_left() -> Iterator[None]:
    """A client of librdkafka lives until nothing refers to it. One that is left in a cycle of objects asks for its
    brokers on and on, at ports that later tests get; a producer with records that were not delivered does so even if
    the cycle is broken up, because they hold the callbacks that hold it."""
    before = _client_threads()
    yield
    if _client_threads() > before:
        gc.collect()
    if _client_threads() > before:
        for client in gc.get_objects():
            if isinstance(client, Producer):
                with suppress(Exception):  # of callbacks of the test
                    client.purge()
                    client.flush(1)
        gc.collect()


def _client_threads() -> int:
    """Log lines of librdkafka, in this process."""
    found = 0
    for task in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):
            found += task.read_text().startswith("rdk:")
    return found


def pytest_xdist_make_scheduler(config: pytest.Config, log: LogProducer) -> SharedScheduling:
    return SharedScheduling(config, log)


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a real ZooKeeper; tests share it, each under a path of its own."""
    started = coordination_server(tmp_path_factory.mktemp("zookeeper"))
    started.start()
    yield started.connect
    started.stop()


@pytest.fixture(scope="session")
def kafka_lib() -> Path:
    """The directory of Apache Kafka's jars: `java -cp "DIR/*" CLASS` runs any of its tools."""
    with skipped_if_unobtainable():
        return kafka_jars()


@pytest.fixture(scope="session")
def kafka_tools(kafka_lib: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaTools]:
    """Kafka's own tools in one JVM."""
    with KafkaTools(kafka_lib, tmp_path_factory.mktemp("kafka-tools")) as tools:
        yield tools


@pytest.fixture(scope="session")
def kafka4_lib() -> Path:
    """The directory of the clients of Apache Kafka 4."""
    with skipped_if_unobtainable():
        return kafka4_jars()


@pytest.fixture(scope="session")
def kafka_peer(kafka_lib: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaPeer]:
    """A running Apache Kafka broker with a ZooKeeper of its own."""
    patient = {"zookeeper.session.timeout.ms": "18000"}
    peer = KafkaPeer(kafka_lib, tmp_path_factory.mktemp("apache-kafka"), patient)
    try:
        peer.start()
        yield peer
    finally:
        peer.stop()
